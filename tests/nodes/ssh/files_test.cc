#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "controller/nodes/ssh/identities.h"
#include "controller/nodes/ssh/known_hosts_file.h"

// Files of ssh's that are not what they should be.

namespace muster::nodes::ssh {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class FilesTest : public testing::Test {
 protected:
  FilesTest() {
    std::string folder = "/tmp/muster_ssh_files_XXXXXX";
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  ~FilesTest() override { fs::remove_all(folder_); }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
};

TEST_F(FilesTest, AKeyThatIsAPipeIsSaidAndNotWaitedFor) {
  ASSERT_EQ(mkfifo(Path("id").c_str(), 0600), 0);
  ASSERT_EQ(mkfifo(Path("pub.pub").c_str(), 0600), 0);
  Target target;
  target.public_key = true;
  target.chosen_identities = true;
  target.identity_files = {Path("id"), Path("pub"), "/dev/null", folder_};
  const StopSignal stop;
  const auto found =
      CollectIdentities(target, StartLimits(std::chrono::milliseconds(20'000), stop));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->all.empty());
  EXPECT_THAT(found->skipped, testing::ElementsAre(HasSubstr("/id is no plain file"),
                                                   HasSubstr("/pub is not there"),
                                                   HasSubstr("/dev/null is no plain file"),
                                                   HasSubstr(folder_ + " is no plain file")));
}

TEST_F(FilesTest, AHostKeyIsWrittenDownWholeOrNotAtAll) {
  const std::string path = Path("new/known_hosts");
  const std::string first = "a ssh-ed25519 " + std::string(100, 'A') + "\n";
  ASSERT_TRUE(AppendKnownHosts(path, first).ok());
  // In a process of its own: the disk is full after 10 bytes more.
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    rlimit limit;
    limit.rlim_cur = limit.rlim_max = first.size() + 10;
    setrlimit(RLIMIT_FSIZE, &limit);
    const absl::Status status = AppendKnownHosts(path, "b ssh-ed25519 " + std::string(100, 'B'));
    _exit(status.ok() ? 0 : status.message().find(path) == std::string_view::npos ? 1 : 7);
  }
  int ended = 0;
  waitpid(child, &ended, 0);
  EXPECT_EQ(WEXITSTATUS(ended), 7);
  EXPECT_EQ(*ReadKnownHosts(path), first);
  ASSERT_TRUE(AppendKnownHosts(path, "c d e\n").ok());
  EXPECT_EQ(*ReadKnownHosts(path), first + "c d e\n");
}

}  // namespace
}  // namespace muster::nodes::ssh
