// How ranks end by themselves: codes, signals, start failures, and what they leave behind.
#include <signal.h>

#include "tests/worker/e2e_fixture.h"
#include "worker/facts/proc_reader.h"

namespace muster::testing {
namespace {

class ExitsE2e : public WorkerE2e {
 protected:
  v1::RankStatus RunToEnd(const std::string& job, const std::vector<std::string>& argv) {
    Launch(Job(job), argv);
    return RankOf(WaitEnd(Job(job)), 0);
  }
};

TEST_F(ExitsE2e, CodesAreExact) {
  for (const std::string code : {"0", "1", "77", "255"}) {
    const auto rank = RunToEnd("c" + code, Golden("exit", {code}));
    EXPECT_EQ(rank.state(), v1::RANK_STATE_EXITED);
    EXPECT_EQ(rank.exit().code(), std::stoi(code));
    EXPECT_EQ(rank.exit().signal(), 0);
    EXPECT_FALSE(rank.exit().escalated());
  }
}

TEST_F(ExitsE2e, SignalsAreTold) {
  const auto killed = RunToEnd("kill", Golden("selfkill", {"9"}));
  EXPECT_EQ(killed.state(), v1::RANK_STATE_EXITED);
  EXPECT_EQ(killed.exit().code(), 137);
  EXPECT_EQ(killed.exit().signal(), SIGKILL);
  EXPECT_FALSE(killed.exit().shim_lost());

  const auto segv = RunToEnd("segv", Golden("segv"));
  EXPECT_EQ(segv.exit().code(), 139);
  EXPECT_EQ(segv.exit().signal(), SIGSEGV);
  // The half line before the crash is in the log.
  EXPECT_FALSE(ReadFile(RankFile(Job("segv"), 0, "stdout.log")).empty());

  const auto aborted = RunToEnd("abort", Golden("abort"));
  EXPECT_EQ(aborted.exit().code(), 134);
}

TEST_F(ExitsE2e, TimesAndOrderAreTold) {
  v1::Desired wish =
      Prepare(Job("order"), {"/bin/sh", "-c", "sleep 0.$((3 - RANK * 2)); exit $RANK"}, 2);
  LaunchSpec(wish);
  const auto end = WaitEnd(Job("order"));
  EXPECT_EQ(RankOf(end, 1).exit().wait_order(), 1u);
  EXPECT_EQ(RankOf(end, 0).exit().wait_order(), 2u);
  EXPECT_LT(RankOf(end, 1).exit().ended_ns(), RankOf(end, 0).exit().ended_ns());
  EXPECT_GT(RankOf(end, 1).exit().ended_ns(), RankOf(end, 1).started_ns());
  EXPECT_GT(RankOf(end, 1).started_ns(), 1'700'000'000'000'000'000);
}

TEST_F(ExitsE2e, StartFailuresNameTheReason) {
  const auto missing = RunToEnd("missing", {"/x/train"});
  EXPECT_EQ(missing.state(), v1::RANK_STATE_EXITED);
  EXPECT_EQ(missing.error(), "exec /x/train: No such file or directory");
  EXPECT_EQ(missing.exit().code(), 127);

  const auto not_in_path = RunToEnd("path", {"no-such-program"});
  EXPECT_NE(not_in_path.error().find(
                "exec no-such-program: No such file or directory (not found in PATH="),
            std::string::npos);

  const auto folder = RunToEnd("folder", {"/tmp"});
  EXPECT_EQ(folder.error(), "exec /tmp: Permission denied");
  EXPECT_EQ(folder.exit().code(), 126);

  v1::Desired wish = Prepare(Job("dir"), {"true"});
  wish.mutable_ranks(0)->set_working_dir("/no/such/folder");
  LaunchSpec(wish);
  EXPECT_EQ(RankOf(WaitEnd(Job("dir")), 0).error(),
            "chdir /no/such/folder: No such file or directory");
}

TEST_F(ExitsE2e, ErrorFileIsCarried) {
  const auto rank = RunToEnd("error", Golden("error_file"));
  EXPECT_EQ(rank.exit().code(), 1);
  EXPECT_NE(rank.exit().error_record().find("message"), std::string::npos);
}

TEST_F(ExitsE2e, LargeErrorFileIsCutNotDropped) {
  Launch(Job("big"),
         {"/bin/sh", "-c", "head -c 200000 /dev/zero | tr '\\0' x > $TORCHELASTIC_ERROR_FILE"});
  EXPECT_EQ(RankOf(WaitEnd(Job("big")), 0).exit().error_record(), std::string(64 << 10, 'x'));
}

TEST_F(ExitsE2e, DaemonIsNamedAndEnded) {
  const auto begin = std::chrono::steady_clock::now();
  Launch(Job("daemon"), Golden("daemonize", {"60"}));
  const auto exited = client_->WaitFor(
      Job("daemon"), [](const auto& o) { return AllIn(o, v1::RANK_STATE_EXITED); }, 5s);
  ASSERT_TRUE(exited);
  // Counted as finished although its daemon holds the pipes: within a second of its end.
  const int64_t now_ns = std::chrono::system_clock::now().time_since_epoch().count();
  EXPECT_LT(now_ns - RankOf(*exited, 0).exit().ended_ns(), 1'000'000'000);
  const auto end = WaitEnd(Job("daemon"), 5s);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  ASSERT_EQ(end.end().swept_size(), 1);
  EXPECT_NE(end.end().swept(0).command().find("daemonize"), std::string::npos);
  EXPECT_EQ(end.end().swept(0).rank(), 0u);
  EXPECT_TRUE(end.end().survivors().empty());
  EXPECT_TRUE(end.end().verified());
  EXPECT_FALSE(Alive(static_cast<pid_t>(end.end().swept(0).pid())));
  const auto log = client_->WaitLog(0, v1::STREAM_STDOUT, 5s);
  ASSERT_TRUE(log);
  EXPECT_NE(log->find("stays"), std::string::npos);
}

TEST_F(ExitsE2e, StubbornChildrenOfAKilledRankAreSwept) {
  const auto running = Launch(Job("loader"), Golden("dataloader", {"20", "60"}));
  ASSERT_TRUE(client_->WaitText(0, v1::STREAM_STDOUT, "children", 10s));
  kill(static_cast<pid_t>(RankOf(running, 0).pid()), SIGKILL);
  const auto end = WaitEnd(Job("loader"), 10s);
  EXPECT_EQ(RankOf(end, 0).state(), v1::RANK_STATE_EXITED);
  EXPECT_EQ(RankOf(end, 0).exit().code(), 137);
  EXPECT_EQ(end.end().swept_size(), 20);
  EXPECT_TRUE(end.end().survivors().empty());
  EXPECT_TRUE(ProcessesOf(controller_).empty());
}

TEST_F(ExitsE2e, ClosedStdoutIsNotTheEnd) {
  Launch(Job("close"), Golden("close_stdout", {"1"}));
  ASSERT_TRUE(client_->WaitText(0, v1::STREAM_STDOUT, "\n", 10s));
  std::this_thread::sleep_for(300ms);
  EXPECT_TRUE(client_->WaitFor(
      Job("close"), [](const auto& o) { return AllIn(o, v1::RANK_STATE_RUNNING); }, 0s));
  EXPECT_EQ(RankOf(WaitEnd(Job("close")), 0).exit().code(), 3);
}

TEST_F(ExitsE2e, LostShimTakesItsRank) {
  const auto running = Launch(Job("shim"), Golden("setsid_grandchild", {"60"}));
  // Both lines: the grandchild would die of its own print once nobody reads its pipe.
  ASSERT_TRUE(client_->WaitText(0, v1::STREAM_STDOUT, "grandchild", 10s));
  ASSERT_TRUE(client_->WaitText(0, v1::STREAM_STDOUT, "waits", 10s));
  const auto rank = static_cast<pid_t>(RankOf(running, 0).pid());
  const auto stat = facts::ProcReader::Real().Stat(rank);
  ASSERT_TRUE(stat);
  kill(stat->ppid, SIGKILL);
  const auto end = WaitEnd(Job("shim"), 10s);
  EXPECT_TRUE(RankOf(end, 0).exit().shim_lost());
  EXPECT_EQ(RankOf(end, 0).state(), v1::RANK_STATE_EXITED);
  EXPECT_FALSE(Alive(rank));
  // The grandchild was in nobody's tree any more: found by its marker or its cgroup.
  EXPECT_EQ(end.end().swept_size(), 1);
  EXPECT_TRUE(ProcessesOf(controller_).empty());
  // What was written is not lost with the shim.
  const auto log = client_->WaitLog(0, v1::STREAM_STDOUT, 5s);
  ASSERT_TRUE(log);
  EXPECT_NE(log->find("waits"), std::string::npos);
}

}  // namespace
}  // namespace muster::testing
