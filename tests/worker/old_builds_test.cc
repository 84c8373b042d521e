#include "worker/daemon/old_builds.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>

namespace muster::worker {
namespace {

namespace fs = std::filesystem;

class OldBuildsTest : public testing::Test {
 protected:
  OldBuildsTest() {
    std::string folder = "/tmp/muster_builds_XXXXXX";
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    root_ = folder;
  }
  ~OldBuildsTest() override { fs::remove_all(root_); }

  fs::path Make(const std::string& name, int seconds_ago) {
    const fs::path folder = root_ / "bin" / name;
    fs::create_directories(folder);
    std::ofstream(folder / "musterd") << "x";
    const timespec then = {.tv_sec = std::time(nullptr) - seconds_ago, .tv_nsec = 0};
    const timespec times[2] = {then, then};
    EXPECT_EQ(utimensat(AT_FDCWD, folder.c_str(), times, 0), 0);
    return folder;
  }

  fs::path root_;
};

TEST_F(OldBuildsTest, OnlyWhatIsOldAndUnusedGoes) {
  const fs::path own = Make(std::string(64, 'a'), 9000);
  const fs::path old = Make(std::string(64, 'b'), 9000);
  const fs::path fresh = Make(std::string(64, 'c'), 10);
  const fs::path running = Make(std::string(64, 'd'), 9000);
  const fs::path cut = Make(".push-Ab12Cd", 9000);
  const fs::path under_way = Make(".push-Zb12Cd", 10);
  const fs::path others = Make("something", 9000);
  fs::copy_file("/bin/sleep", running / "sleep");
  const pid_t pid = fork();
  if (pid == 0) {
    execl((running / "sleep").c_str(), "sleep", "1000", nullptr);
    _exit(1);
  }
  while (fs::read_symlink("/proc/" + std::to_string(pid) + "/exe") != running / "sleep")
    usleep(1000);
  const timespec then[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, running.c_str(), then, 0), 0);

  TidyBuilds(own / "musterd", std::chrono::hours(1));
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  EXPECT_TRUE(fs::exists(own));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(fresh));
  EXPECT_TRUE(fs::exists(running));
  EXPECT_FALSE(fs::exists(cut));
  EXPECT_TRUE(fs::exists(under_way));
  EXPECT_TRUE(fs::exists(others));
  // Its use is noted: another build's tidying leaves it.
  TidyBuilds(fresh / "musterd", std::chrono::hours(1));
  EXPECT_TRUE(fs::exists(own));
}

TEST_F(OldBuildsTest, AnInstalledWorkerTidiesNothing) {
  const fs::path old = Make(std::string(64, 'b'), 9000);
  std::ofstream(root_ / "bin/musterd") << "x";
  TidyBuilds(root_ / "bin/musterd", std::chrono::hours(1));
  TidyBuilds("/nowhere/musterd", std::chrono::hours(1));
  EXPECT_TRUE(fs::exists(old));
}

}  // namespace
}  // namespace muster::worker
