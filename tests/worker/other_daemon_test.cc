#include "worker/daemon/other_daemon.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "common/unique_fd.h"
#include "common/version.h"

namespace muster::worker {
namespace {

using testing::HasSubstr;

// A process that holds the lock as a daemon does, until it is told to end.
class OtherDaemonTest : public testing::Test {
 protected:
  OtherDaemonTest() {
    std::string folder = "/tmp/muster_other_XXXXXX";
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    dir_ = folder;
  }
  ~OtherDaemonTest() override {
    if (pid_ > 0) kill(pid_, SIGKILL);
    if (reaper_.joinable()) reaper_.join();
    std::filesystem::remove_all(dir_);
  }

  // `said`: the pid that it writes, if not its own.
  void Serve(const std::string& text_after_pid, pid_t said = 0) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    pid_ = fork();
    if (pid_ == 0) {
      const int lock = open((dir_ + "/lock").c_str(), O_RDWR | O_CREAT, 0600);
      const std::string text = std::to_string(said > 0 ? said : getpid()) + "\n" + text_after_pid;
      const bool ok = flock(lock, LOCK_EX | LOCK_NB) == 0 &&
                      write(lock, text.data(), text.size()) > 0 && write(ready[1], "x", 1) == 1;
      if (on_term_ != nullptr) signal(SIGTERM, on_term_);
      while (ok) pause();
      _exit(1);
    }
    char c;
    ASSERT_EQ(read(ready[0], &c, 1), 1);
    close(ready[0]);
    close(ready[1]);
    reaper_ = std::thread([pid = pid_] { waitpid(pid, nullptr, 0); });
  }

  absl::Status Replace() { return ReplaceOtherProtocol(dir_, facts::ProcReader::Real()); }
  bool Serves() { return FindServing(dir_).has_value(); }

  std::string dir_;
  pid_t pid_ = 0;
  void (*on_term_)(int) = nullptr;  // of the daemon
  std::thread reaper_;
};

TEST_F(OtherDaemonTest, NobodyServes) {
  EXPECT_TRUE(Replace().ok());
  std::ofstream(dir_ + "/lock") << "1234\n9\n";  // of one that has ended
  EXPECT_FALSE(Serves());
  EXPECT_TRUE(Replace().ok());
}

TEST_F(OtherDaemonTest, OneOfTheSameProtocolStays) {
  Serve(std::to_string(kProtocol) + "\n");
  EXPECT_TRUE(Replace().ok());
  ASSERT_TRUE(Serves());
  EXPECT_EQ(FindServing(dir_)->pid, pid_);
}

TEST_F(OtherDaemonTest, OneThatDoesNotSayItHasTheFirst) {
  Serve("");
  ASSERT_TRUE(Serves());
  EXPECT_EQ(FindServing(dir_)->protocol, 1u);
}

TEST_F(OtherDaemonTest, OneOfAnotherProtocolWithoutRanksIsEnded) {
  Serve("999\n");
  EXPECT_TRUE(Replace().ok()) << Replace();
  EXPECT_FALSE(Serves());
}

TEST_F(OtherDaemonTest, OneThatIsHereIsTakenAndOneOfAnotherContainerIsNot) {
  EXPECT_TRUE(CheckServesHere(dir_).ok());  // nobody serves
  Serve(std::to_string(kProtocol) + "\n");
  EXPECT_TRUE(CheckServesHere(dir_).ok()) << CheckServesHere(dir_);
  kill(pid_, SIGKILL);
  reaper_.join();
  // The pid is another process's here; there it is the daemon's.
  Serve(std::to_string(kProtocol) + "\n", getpid());
  const absl::Status status = CheckServesHere(dir_);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.ToString(), HasSubstr("is no process of this host: end it where it runs"));
}

TEST_F(OtherDaemonTest, OneOfAnotherPidNamespaceIsNotTaken) {
  if (geteuid() != 0) GTEST_SKIP() << "a pid namespace needs root";
  const std::string lock = dir_ + "/lock";
  // Its pid there is 1, and it is not told apart from our init by that alone.
  const std::string script = "echo 77 > " + lock + "; echo " + std::to_string(kProtocol) + " >> " +
                             lock + "; echo x; sleep 60";
  int out[2];
  ASSERT_EQ(pipe(out), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(out[1], 1);
    execlp("unshare", "unshare", "--pid", "--fork", "--kill-child", "flock", lock.c_str(), "sh",
           "-c", script.c_str(), nullptr);
    _exit(1);
  }
  char c;
  ASSERT_EQ(read(out[0], &c, 1), 1);
  const absl::Status status = CheckServesHere(dir_);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(out[0]);
  close(out[1]);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.ToString(), HasSubstr("(pid 77) is no process of this host"));
}

TEST_F(OtherDaemonTest, OneThatWouldStartARankWhenItIsToldToEndGetsNoChance) {
  on_term_ = [](int) {
    if (fork() == 0) execlp("tail", "muster-shim", "/dev/null", "-f", nullptr);
  };
  Serve("999\n");
  EXPECT_TRUE(Replace().ok());
  EXPECT_FALSE(Serves());
  const auto& proc = facts::ProcReader::Real();
  for (const pid_t pid : proc.Pids()) {
    const auto stat = proc.Stat(pid);
    EXPECT_FALSE(stat && stat->ppid == pid_ && !stat->IsZombie());
  }
}

TEST_F(OtherDaemonTest, APidOfAnotherContainerIsNotEnded) {
  const pid_t bystander = fork();
  if (bystander == 0) {
    while (true) pause();
  }
  Serve("999\n", bystander);
  const absl::Status status = Replace();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.ToString(), HasSubstr("is no process of this host"));
  EXPECT_EQ(waitpid(bystander, nullptr, WNOHANG), 0);
  kill(bystander, SIGKILL);
  waitpid(bystander, nullptr, 0);
}

TEST_F(OtherDaemonTest, AStrangersLockSaysNothing) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a stranger's file";
  Serve("999\n");
  ASSERT_EQ(chown((dir_ + "/lock").c_str(), 12345, 12345), 0);
  EXPECT_FALSE(Serves());
  EXPECT_TRUE(Replace().ok());
  EXPECT_EQ(kill(pid_, 0), 0);
}

TEST_F(OtherDaemonTest, OneWithRanksStaysAndItsJobsAreNamed) {
  Serve("999\n");
  const std::string folder = dir_ + "/jobs/c0ffee/17/attempt_0/3";
  // A shim's command line is its name and its rank folder.
  const pid_t shim = fork();
  if (shim == 0) {
    execlp("tail", "muster-shim", folder.c_str(), "-f", "/dev/null", nullptr);
    _exit(1);
  }
  const auto& proc = facts::ProcReader::Real();
  while (!proc.Command(shim).starts_with("muster-shim " + folder)) usleep(1000);
  const absl::Status status = Replace();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.ToString(), HasSubstr("speaks protocol 999"));
  EXPECT_THAT(status.ToString(), HasSubstr("controller/job c0ffee/17)"));
  EXPECT_TRUE(Serves());
  EXPECT_NE(proc.Stat(pid_)->state, 'T');  // it goes on
  kill(shim, SIGKILL);
  waitpid(shim, nullptr, 0);
}

}  // namespace
}  // namespace muster::worker
