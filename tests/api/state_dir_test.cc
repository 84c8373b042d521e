#include "controller/api/state_dir.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "common/unix_socket.h"
#include "tests/logs/temp_dir.h"

namespace muster::api {
namespace {

using logs::TempDir;

TEST(StateDirTest, FollowsTheEnvironment) {
  setenv("MUSTER_STATE", "/x", 1);
  EXPECT_EQ(DefaultStateDir(), "/x/controller");
  unsetenv("MUSTER_STATE");
  setenv("XDG_STATE_HOME", "/tmp", 1);
  EXPECT_EQ(DefaultStateDir(), "/tmp/muster");
  setenv("XDG_STATE_HOME", "relative", 1);
  const std::string fallback = "/var/tmp/muster-" + std::to_string(getuid()) + "/controller";
  EXPECT_EQ(DefaultStateDir(), fallback);
  unsetenv("XDG_STATE_HOME");
  EXPECT_EQ(DefaultStateDir(), fallback);
}

TEST(StateDirTest, OneControllerAFolder) {
  TempDir dir;
  const std::string path = dir.File("a/controller");
  auto lock = StateLock::Acquire(path);
  ASSERT_TRUE(lock.ok()) << lock.status();
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  const auto second = StateLock::Acquire(path);
  ASSERT_TRUE(absl::IsFailedPrecondition(second.status()));
  EXPECT_NE(second.status().message().find("pid " + std::to_string(getpid())), std::string::npos)
      << second.status();
  {
    const StateLock moved = *std::move(lock);
    EXPECT_FALSE(StateLock::Acquire(path).ok());
  }
  EXPECT_TRUE(StateLock::Acquire(path).ok());
}

TEST(StateDirTest, OneThatEndsIsWaitedFor) {
  constexpr std::chrono::minutes kLong(1);
  TempDir dir;
  EXPECT_EQ(StateLock::Holder(dir.path()), std::nullopt);
  std::optional<StateLock> lock = *StateLock::Acquire(dir.path());
  EXPECT_EQ(StateLock::Holder(dir.path()), getpid());
  std::thread end([&lock] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    lock.reset();
  });
  {
    const auto next = StateLock::Acquire(dir.path(), kLong);
    EXPECT_TRUE(next.ok()) << next.status();
    end.join();
    // One that serves is not.
    const auto socket = ListenUnix(SocketPath(dir.path()));
    ASSERT_TRUE(socket.ok()) << socket.status();
    EXPECT_TRUE(absl::IsFailedPrecondition(StateLock::Acquire(dir.path(), kLong).status()));
  }
  EXPECT_EQ(StateLock::Holder(dir.path()), std::nullopt);
}

TEST(StateDirTest, TheUsersFolderIsPrivateToo) {
  TempDir dir;
  const std::string user = dir.File("muster-" + std::to_string(getuid()));
  const auto lock = StateLock::Acquire(user + "/controller");
  ASSERT_TRUE(lock.ok()) << lock.status();
  struct stat info {};
  ASSERT_EQ(stat(user.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST(StateDirTest, ADeadControllerLeavesNoLock) {
  TempDir dir;
  const pid_t child = fork();
  if (child == 0) {
    const auto lock = StateLock::Acquire(dir.path());
    _exit(lock.ok() ? 0 : 1);  // without releasing it
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  EXPECT_TRUE(StateLock::Acquire(dir.path()).ok());
}

TEST(StateDirTest, ClosesAnOpenFolderAndRefusesAStrangersOne) {
  TempDir dir;
  std::filesystem::permissions(dir.path(), std::filesystem::perms::all);
  ASSERT_TRUE(StateLock::Acquire(dir.path()).ok());
  struct stat info {};
  ASSERT_EQ(stat(dir.path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  std::filesystem::create_directory_symlink(dir.path(), dir.File("link"));
  EXPECT_FALSE(StateLock::Acquire(dir.File("link")).ok());
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a stranger's folder";
  ASSERT_EQ(chown(dir.path().c_str(), 12345, 12345), 0);
  const auto lock = StateLock::Acquire(dir.path());
  ASSERT_TRUE(absl::IsFailedPrecondition(lock.status()));
  EXPECT_NE(lock.status().message().find("belongs to uid 12345"), std::string::npos);
}

}  // namespace
}  // namespace muster::api
