#include "common/spawn.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "common/unique_fd.h"

namespace muster {
namespace {

UniqueFd Memory() {
  return UniqueFd(memfd_create("output", MFD_CLOEXEC));
}

std::string TextOf(const UniqueFd& file) {
  std::array<char, 4096> text{};
  const ssize_t size = pread(file.get(), text.data(), text.size(), 0);
  return std::string(text.data(), size > 0 ? static_cast<size_t>(size) : 0);
}

// Runs it to its end; the wait status.
int RunToEnd(const SpawnOptions& options) {
  const auto pid = Spawn(options);
  EXPECT_TRUE(pid.ok()) << pid.status();
  int status = -1;
  if (!pid.ok()) return -1;
  EXPECT_EQ(waitpid(*pid, &status, 0), *pid);
  return status;
}

TEST(SpawnTest, WordsReachTheProgramAsTheyAre) {
  const UniqueFd out = Memory();
  const std::string odd = " a'\"$x\n\xff";
  EXPECT_EQ(RunToEnd({.words = {"printf", "%s|%s", odd, ""}, .out = out.get()}), 0);
  EXPECT_EQ(TextOf(out), odd + "|");
}

TEST(SpawnTest, AnEnvironmentReplacesOurs) {
  const UniqueFd out = Memory();
  EXPECT_EQ(RunToEnd({.words = {"env"},
                      .program = "/usr/bin/env",
                      .environment = JoinEnvironment({{"A", "1"}, {"B", ""}}),
                      .out = out.get()}),
            0);
  EXPECT_EQ(TextOf(out), "A=1\nB=\n");
  const UniqueFd none = Memory();
  EXPECT_EQ(RunToEnd({.words = {"env"},
                      .program = "/usr/bin/env",
                      .environment = std::vector<std::string>(),
                      .out = none.get()}),
            0);
  EXPECT_EQ(TextOf(none), "");
}

TEST(SpawnTest, StartsInTheFolder) {
  const UniqueFd out = Memory();
  EXPECT_EQ(RunToEnd({.words = {"pwd"}, .folder = "/usr", .out = out.get()}), 0);
  EXPECT_EQ(TextOf(out), "/usr\n");
}

TEST(SpawnTest, AGroupOrASessionOfItsOwn) {
  using Group = SpawnOptions::Group;
  for (const Group group : {Group::kOurs, Group::kOwn, Group::kOwnSession}) {
    const auto pid = Spawn({.words = {"sleep", "60"}, .group = group});
    ASSERT_TRUE(pid.ok()) << pid.status();
    EXPECT_EQ(getpgid(*pid), group == Group::kOurs ? getpgid(0) : *pid);
    EXPECT_EQ(getsid(*pid), group == Group::kOwnSession ? *pid : getsid(0));
    kill(*pid, SIGKILL);
    waitpid(*pid, nullptr, 0);
  }
}

TEST(SpawnTest, PassesADescriptorAlsoUnderItsOwnNumber) {
  const UniqueFd file(open("/dev/null", O_RDONLY | O_CLOEXEC));
  for (const int theirs : {file.get(), 9}) {
    const std::string test = "test -e /proc/self/fd/" + std::to_string(theirs);
    EXPECT_EQ(RunToEnd({.words = {"sh", "-c", test}, .pass = {{file.get(), theirs}}}), 0) << theirs;
  }
  EXPECT_NE(RunToEnd({.words = {"sh", "-c", "test -e /proc/self/fd/9"}}), 0);
}

TEST(SpawnTest, ClosesWhatOthersLeftOpen) {
  const UniqueFd open_one(fcntl(STDERR_FILENO, F_DUPFD, 20));  // not close-on-exec
  const std::string test = "test -e /proc/self/fd/" + std::to_string(open_one.get());
  EXPECT_EQ(RunToEnd({.words = {"sh", "-c", test}}), 0);
  EXPECT_NE(RunToEnd({.words = {"sh", "-c", test}, .close_others = true}), 0);
}

TEST(SpawnTest, SignalsAreDefaultAndNotBlocked) {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  const auto old = signal(SIGINT, SIG_IGN);
  const int status = RunToEnd({.words = {"sh", "-c", "kill -TERM $$; exit 3"}});
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << DescribeWaitStatus(status);
  const int interrupted = RunToEnd({.words = {"sh", "-c", "kill -INT $$; exit 3"}});
  EXPECT_TRUE(WIFSIGNALED(interrupted)) << DescribeWaitStatus(interrupted);
  signal(SIGINT, old);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

TEST(SpawnTest, TheErrorNamesTheProgram) {
  const auto pid = Spawn({.words = {"/nowhere/x"}});
  EXPECT_EQ(pid.status().message(), "/nowhere/x: No such file or directory");
  EXPECT_FALSE(Spawn({}).ok());
}

TEST(SpawnTest, DescribesHowItEnded) {
  EXPECT_EQ(DescribeWaitStatus(RunToEnd({.words = {"sh", "-c", "exit 3"}})), "exited with 3");
  EXPECT_EQ(DescribeWaitStatus(RunToEnd({.words = {"sh", "-c", "kill -9 $$"}})),
            "was ended by signal 9");
}

}  // namespace
}  // namespace muster
