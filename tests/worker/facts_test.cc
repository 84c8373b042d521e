// Parsers of what the machine says, on texts of other machines too.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/reactor.h"
#include "tests/worker/worker_testing.h"
#include "worker/daemon/options.h"
#include "worker/daemon/state_dir.h"
#include "worker/facts/node_facts.h"
#include "worker/facts/proc_reader.h"

namespace muster::facts {
namespace {

TEST(ParseStat, NamesMayHoldAnything) {
  const auto stat = ParseStat(
      "42 (a) b (c)) D 7 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 2 "
      "18446744073709\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->pid, 42);
  EXPECT_EQ(stat->comm, "a) b (c)");
  EXPECT_EQ(stat->state, 'D');
  EXPECT_EQ(stat->ppid, 7);
  EXPECT_EQ(stat->start_ticks, 987654u);
  for (const char* bad : {"", "42", "42 (x", "42 (x) S", "(x) S 1 2"})
    EXPECT_FALSE(ParseStat(bad)) << bad;
}

TEST(ProcReader, KnowsThisProcess) {
  const ProcReader& proc = ProcReader::Real();
  const auto stat = proc.Stat(getpid());
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->ppid, getppid());
  EXPECT_FALSE(stat->IsZombie());
  EXPECT_EQ(proc.Uid(getpid()), getuid());
  EXPECT_NE(proc.Command(getpid()).find("muster_worker_test"), std::string::npos);
  EXPECT_FALSE(proc.Stat(0x3fffffff));
}

TEST(NodeFacts, ArePlausible) {
  EXPECT_GT(Cores(), 0u);
  EXPECT_GT(MemoryBytes(), 64u << 20);
  EXPECT_EQ(BootId().size(), 36u);
  EXPECT_GT(NetNamespace(), 0u);
}

}  // namespace
}  // namespace muster::facts

namespace muster::worker {
namespace {

std::string ErrorOf(const std::vector<std::string>& words) {
  return std::string(ParseOptions(words).status().message());
}

TEST(Options, AllForms) {
  const auto options =
      ParseOptions({"--name", "n1", "--listen=unix", "--listen", "127.0.0.2:1", "--state-dir=/s",
                    "--idle-exit", "5", "--fake-devices=8", "--background"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->name, "n1");
  EXPECT_EQ(options->listen, std::vector<std::string>{"127.0.0.2:1"});
  EXPECT_EQ(options->state_dir, "/s");
  EXPECT_EQ(options->idle_exit_s, 5u);
  EXPECT_EQ(options->fake_devices, 8u);
  EXPECT_TRUE(options->background);
  EXPECT_EQ(ParseOptions({})->name, facts::HostName());
}

TEST(Options, ErrorsNameWordReasonAndFix) {
  EXPECT_EQ(ErrorOf({"--nmae", "x"}), "unknown option --nmae; did you mean '--name'?");
  EXPECT_EQ(ErrorOf({"serve"}), "unknown argument serve");
  EXPECT_EQ(ErrorOf({"--name"}), "--name: needs a value");
  EXPECT_EQ(ErrorOf({"--json=1"}), "--json: takes no value");
  EXPECT_EQ(ErrorOf({"--idle-exit", "-1"}),
            "--idle-exit -1: expected a number from 0 to 1000000000");
  EXPECT_EQ(ErrorOf({"--fake-devices", "9x"}),
            "--fake-devices 9x: expected a number from 0 to 1024");
  EXPECT_NE(ErrorOf({"--name", "../up"}).find("not starting with a dot"), std::string::npos);
}

TEST(StateDir, IsPrivateAndLocked) {
  testing::TempDir dir;
  const std::string path = dir.path() + "/a/b/state";
  {
    const auto first = OpenStateDir(path);
    ASSERT_TRUE(first.ok()) << first.status();
    struct stat info;
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    EXPECT_EQ(OpenStateDir(path).status().code(), absl::StatusCode::kAlreadyExists);
  }
  EXPECT_TRUE(OpenStateDir(path).ok());  // the lock went with its holder
  const std::string file = dir.path() + "/file";
  fclose(fopen(file.c_str(), "w"));
  EXPECT_EQ(OpenStateDir(file).status().message(), "state folder " + file + " is not a folder");
  const std::string link = dir.path() + "/link";
  ASSERT_EQ(symlink(path.c_str(), link.c_str()), 0);
  EXPECT_FALSE(OpenStateDir(link).ok());
}

TEST(StateDir, PathOrder) {
  setenv("MUSTER_STATE", "/parent", 1);
  EXPECT_EQ(StateDirPath("", "n1"), "/parent/n1");
  EXPECT_EQ(StateDirPath("/given/", "n1"), "/given/");
  unsetenv("MUSTER_STATE");
  EXPECT_EQ(StateDirPath("", "n1"), "/var/tmp/muster-" + std::to_string(getuid()) + "/n1");
}

TEST(Reactor, TimersFireInOrderAndCanBeCancelled) {
  Reactor reactor(Clock::Real());
  std::string order;
  using std::chrono::milliseconds;
  reactor.After(milliseconds(20), [&] { order += "b"; });
  reactor.After(milliseconds(5), [&] { order += "a"; });
  const auto id = reactor.After(milliseconds(10), [&] { order += "x"; });
  reactor.After(milliseconds(1), [&] { reactor.Cancel(id); });
  reactor.After(milliseconds(30), [&] { reactor.Stop(); });
  reactor.Run();
  EXPECT_EQ(order, "ab");
}

TEST(Reactor, PostedFromAnotherThread) {
  Reactor reactor(Clock::Real());
  int sum = 0;
  std::thread poster([&] {
    for (int i = 1; i <= 1000; ++i) reactor.Post([&sum, i] { sum += i; });
    reactor.Stop();
  });
  reactor.Run();
  poster.join();
  EXPECT_EQ(sum, 500500);
}

TEST(Reactor, ACallbackMayUnwatchItself) {
  Reactor reactor(Clock::Real());
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  ASSERT_EQ(write(fds[1], "x", 1), 1);
  int calls = 0;
  reactor.Watch(fds[0], [&] {
    ++calls;
    reactor.Unwatch(fds[0]);
  });
  reactor.After(std::chrono::milliseconds(20), [&] { reactor.Stop(); });
  reactor.Run();
  EXPECT_EQ(calls, 1);
  close(fds[0]);
  close(fds[1]);
}

}  // namespace
}  // namespace muster::worker
