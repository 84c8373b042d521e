#include "controller/stage/scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "controller/stage/piece_reader.h"
#include "tests/stage/stage_testing.h"

namespace muster::stage {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::atomic<bool> kGoOn{false};

std::vector<std::string> Paths(const ScannedTree& scanned) {
  std::vector<std::string> paths;
  for (const auto& entry : scanned.tree.manifest().entries()) paths.push_back(entry.path());
  return paths;
}

TEST(ScanTree, TheContentIdFollowsContentModesAndNamesAlone) {
  const TempDir a;
  const TempDir b;
  for (const TempDir* dir : {&a, &b}) {
    Write(*dir / "x", "content");
    Write(*dir / "sub/y", "more");
  }
  const std::string id = Tree::ContentId(Scan(a.path()).manifest);
  EXPECT_EQ(Tree::ContentId(Scan(b.path()).manifest), id);
  chmod((b / "x").c_str(), 0755);
  EXPECT_NE(Tree::ContentId(Scan(b.path()).manifest), id);
  chmod((b / "x").c_str(), 0644);
  EXPECT_EQ(Tree::ContentId(Scan(b.path()).manifest), id);
  Write(b / "x", "Content");
  EXPECT_NE(Tree::ContentId(Scan(b.path()).manifest), id);
}

TEST(ScanTree, LeavesOutWhatIsIgnored) {
  const TempDir dir;
  Write(dir / ".git/HEAD", "x");
  Write(dir / "a/__pycache__/m.pyc", "x");
  Write(dir / "a/m.py", "x");
  Write(dir / "data/large.bin", "x");
  Write(dir / "data/keep.txt", "x");
  Write(dir / ".musterignore", "data/*\n!data/keep.txt\n");
  const ScannedTree scanned = Scan(dir.path());
  EXPECT_THAT(Paths(scanned), ElementsAre(".musterignore", "a", "a/m.py", "data", "data/keep.txt"));
  EXPECT_EQ(scanned.ignored, 3u);
}

TEST(ScanTree, HardLinksAreCopiesAndSpecialBitsStayBehind) {
  const TempDir dir;
  Write(dir / "a", "same");
  fs::create_hard_link(dir / "a", dir / "b");
  chmod((dir / "a").c_str(), 06755);
  const ScannedTree scanned = Scan(dir.path());
  EXPECT_EQ(scanned.tree.num_pieces(), 2u);
  EXPECT_EQ(scanned.tree.entry(0).mode(), 0755u);
}

TEST(ScanTree, RefusesSocketsPipesAndWhatCannotBeReadByName) {
  const TempDir dir;
  Write(dir / "a", "x");
  mkfifo((dir / "sub-pipe").c_str(), 0600);
  auto scanned = ScanTree({dir.path()}, kGoOn);
  ASSERT_TRUE(absl::IsInvalidArgument(scanned.status()));
  EXPECT_THAT(std::string(scanned.status().message()),
              HasSubstr("sub-pipe: a named pipe can't be staged"));
  fs::remove(dir / "sub-pipe");
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (dir / "s").c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  close(fd);
  scanned = ScanTree({dir.path()}, kGoOn);
  EXPECT_THAT(std::string(scanned.status().message()), HasSubstr("/s: a socket can't be staged"));
  // Said how to leave it out: that works.
  Write(dir / ".musterignore", "s\n");
  EXPECT_TRUE(ScanTree({dir.path()}, kGoOn).ok());
}

TEST(ScanTree, AListOfExceptionsThatIsNoFileIsRefusedAtOnce) {
  const TempDir dir;
  Write(dir / "a", "x");
  ASSERT_EQ(mkfifo((dir / ".musterignore").c_str(), 0600), 0);
  auto scanned = ScanTree({dir.path()}, kGoOn);
  EXPECT_THAT(std::string(scanned.status().message()),
              HasSubstr(".musterignore: is no plain file"));
  fs::remove(dir / ".musterignore");
  fs::create_directory(dir / ".musterignore");
  scanned = ScanTree({dir.path()}, kGoOn);
  EXPECT_THAT(std::string(scanned.status().message()),
              HasSubstr(".musterignore: is no plain file"));
}

TEST(ScanTree, SeveralPathsKeepTheirNames) {
  const TempDir dir;
  Write(dir / "one/x", "x");
  Write(dir / "two.txt", "y");
  auto scanned = ScanTree({dir / "one", dir / "two.txt"}, kGoOn);
  ASSERT_TRUE(scanned.ok()) << scanned.status();
  EXPECT_THAT(Paths(*scanned), ElementsAre("one", "one/x", "two.txt"));
  Write(dir / "other/two.txt", "z");
  EXPECT_THAT(
      std::string(ScanTree({dir / "two.txt", dir / "other/two.txt"}, kGoOn).status().message()),
      HasSubstr("is called two.txt too"));
  EXPECT_FALSE(ScanTree({dir / "nothing"}, kGoOn).ok());
  fs::create_directories(dir / "empty");
  EXPECT_THAT(std::string(ScanTree({dir / "empty"}, kGoOn).status().message()),
              HasSubstr("there is nothing in it to stage"));
}

TEST(PieceReader, RefusesAFileThatChangedMeanwhile) {
  const TempDir dir;
  Write(dir / "a", "first");
  Write(dir / "b", "second");
  const auto scanned = std::make_shared<const ScannedTree>(Scan(dir.path()));
  Write(dir / "b", "chang");
  absl::Mutex mutex;
  std::vector<absl::StatusOr<std::string>> got;
  {
    PieceReader reader(scanned, [&](const std::string&, uint32_t, absl::StatusOr<std::string> b) {
      absl::MutexLock lock(&mutex);
      got.push_back(std::move(b));
    });
    for (const uint32_t piece : {0u, 1u, 2u, 3u}) reader.Want("n1", piece);
    const auto all = [&got] { return got.size() == 4; };
    absl::MutexLock lock(&mutex);
    mutex.Await(absl::Condition(&all));
  }
  EXPECT_EQ(*got[0], scanned->manifest);
  EXPECT_EQ(*got[1], "first");
  EXPECT_TRUE(absl::IsFailedPrecondition(got[2].status()));
  EXPECT_THAT(std::string(got[2].status().message()),
              HasSubstr("b was changed while it was staged"));
  EXPECT_FALSE(got[3].ok());
}

}  // namespace
}  // namespace muster::stage
