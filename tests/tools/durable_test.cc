// In which order names and notes reach the disk. fsync, fdatasync and rename of this program are
// watched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/data/golden.h"
#include "trainer/data/indexed_writer.h"
#include "trainer/data/partial_file.h"
#include "trainer/tools/resume_state.h"

namespace {

std::vector<std::string>& Calls() {
  static auto* const calls = new std::vector<std::string>;
  return *calls;
}

bool IsFolder(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

extern "C" int fsync(int fd) {
  Calls().emplace_back(IsFolder(fd) ? "sync folder" : "sync file");
  return static_cast<int>(::syscall(SYS_fsync, fd));
}
extern "C" int fdatasync(int fd) {
  Calls().emplace_back("sync file");
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}
extern "C" int rename(const char* from, const char* to) noexcept {
  Calls().emplace_back("rename");
  return static_cast<int>(::syscall(SYS_rename, from, to));
}

namespace muster::tools {
namespace {

using ::testing::ElementsAre;

class DurableTest : public ::testing::Test {
 protected:
  DurableTest() { Calls().clear(); }

  std::string Path(const std::string& name) const { return (folder_.path() / name).string(); }

  data::testing::TempFolder folder_;
};

TEST_F(DurableTest, ANameIsSyncedAfterTheFileGotIt) {
  data::PartialFile file(Path("x"));
  file.Write("abc", 3);
  file.Publish();
  EXPECT_THAT(Calls(), ElementsAre("sync file", "rename", "sync folder"));
}

TEST_F(DurableTest, ATemporaryNameIsSyncedOnce) {
  data::PartialFile file(Path("x"));
  file.Sync();
  EXPECT_THAT(Calls(), ElementsAre("sync file", "sync folder"));
  file.Sync();
  EXPECT_EQ(Calls().size(), 3U);
  EXPECT_EQ(Calls().back(), "sync file");
}

TEST_F(DurableTest, ANoteFollowsTheFilesItSpeaksOf) {
  data::IndexedWriter writer(Path("o"), data::TokenType::kUint16);
  ResumeState state;
  state.writers = {writer.Sync()};
  const size_t of_writer = Calls().size();
  ASSERT_EQ(of_writer, 6U);  // three files and their names
  WriteResumeState(Path("o"), state);
  const std::vector<std::string> note(Calls().begin() + 6, Calls().end());
  EXPECT_THAT(note, ElementsAre("sync file", "rename", "sync folder"));
}

TEST_F(DurableTest, PublishedFilesAreDurable) {
  data::IndexedWriter writer(Path("o"), data::TokenType::kUint16);
  writer.Prepare();
  Calls().clear();
  writer.Publish();
  EXPECT_THAT(Calls(), ElementsAre("sync file", "rename", "sync folder", "sync file", "rename",
                                   "sync folder"));
}

}  // namespace
}  // namespace muster::tools
