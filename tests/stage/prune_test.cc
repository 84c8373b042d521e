#include "worker/stage/prune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/stage/stage_testing.h"
#include "worker/stage/layout.h"
#include "worker/stage/versions.h"

// Which versions of staged trees go, and which stay.

namespace muster::stage {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PruneTest : public testing::Test {
 protected:
  // Content ids of versions that differ in one file, the oldest first.
  std::vector<std::string> StageVersions(int count) {
    std::vector<std::string> ids;
    for (int i = 0; i < count; ++i) {
      Write(source_ / "train.py", "version " + std::to_string(i));
      Write(source_ / "lib/a.so", "library");
      const ScannedTree scanned = Scan(source_.path());
      TestNode node(state_dir_, scanned);
      if (i == 1) node.begin.set_link_path(state_ / "run");
      EXPECT_EQ(node.Run().state(), v1::STAGE_STATE_DONE);
      ids.push_back(node.begin.content_id());
    }
    return ids;
  }
  Layout LayoutOf(const std::string& id) const { return Layout(state_dir_, id); }

  TempDir source_;
  TempDir state_;
  const std::string state_dir_ = state_ / "a";
};

TEST_F(PruneTest, SparesWhatIsUsed) {
  const auto ids = StageVersions(5);
  Write(LayoutOf(ids[2]).version + "/ckpt/step_1.pt", "hours of work");
  fs::create_directories(LayoutOf(ids[3]).version + "/__pycache__");
  auto used = KeepVersion(state_dir_, ids[0]);
  ASSERT_TRUE(used.ok()) << used.status();
  const Pruned pruned = Prune(state_dir_, 1, "", true);
  EXPECT_THAT(pruned.removed, ElementsAre(ids[3]));
  ASSERT_EQ(pruned.kept.size(), 3u);
  EXPECT_THAT(pruned.kept[0], HasSubstr("ckpt is not of the tree"));
  EXPECT_THAT(pruned.kept[1], HasSubstr("run leads to it"));
  EXPECT_THAT(pruned.kept[2], HasSubstr("a job uses it"));
  EXPECT_FALSE(fs::exists(LayoutOf(ids[3]).version));
  EXPECT_EQ(ListVersions(state_dir_).size(), 4u);
  fs::remove(state_ / "run");
  used->reset();
  EXPECT_THAT(Prune(state_dir_, 0, "", true).removed, ElementsAre(ids[4], ids[1], ids[0]));
  // Nothing of them is left but the one with somebody's output.
  for (const auto& item : fs::directory_iterator(state_dir_ + "/stage"))
    EXPECT_THAT(item.path().filename().string(), HasSubstr(ids[2].substr(0, 24)));
}

TEST_F(PruneTest, SparesTheOneThatWasJustStaged) {
  const auto ids = StageVersions(3);
  EXPECT_THAT(Prune(state_dir_, 1, ids[0], false).removed, IsEmpty());  // 1 is linked
  fs::remove(state_ / "run");
  EXPECT_THAT(Prune(state_dir_, 1, ids[0], false).removed, ElementsAre(ids[1]));
}

TEST_F(PruneTest, AJobMayStartFromItUntilItIsRemovedAndNotAfter) {
  const auto ids = StageVersions(1);
  {
    // Two jobs may use it at a time, and a transfer may mend it meanwhile.
    const auto one = KeepVersion(state_dir_, ids[0]);
    const auto two = KeepVersion(state_dir_, ids[0]);
    EXPECT_TRUE(one.ok() && two.ok());
    TestNode again(state_dir_, Scan(source_.path()));
    EXPECT_EQ(again.Run().state(), v1::STAGE_STATE_DONE) << again.status().error();
    EXPECT_THAT(Prune(state_dir_, 0, "", true).removed, IsEmpty());
  }
  EXPECT_THAT(Prune(state_dir_, 0, "", true).removed, ElementsAre(ids[0]));
  const auto late = KeepVersion(state_dir_, ids[0]);
  EXPECT_TRUE(absl::IsNotFound(late.status()));
  EXPECT_THAT(std::string(late.status().message()), HasSubstr("is not here: stage it again"));
  EXPECT_FALSE(fs::exists(LayoutOf(ids[0]).use));
  EXPECT_TRUE(absl::IsInvalidArgument(KeepVersion(state_dir_, "../x").status()));
}

TEST_F(PruneTest, LeftoversOfInterruptedTransfersGo) {
  const std::string base = state_dir_ + "/stage/" + std::string(24, 'c');
  Write(base + ".partial/x", "x");
  EXPECT_THAT(Prune(state_dir_, 4, "", false).removed, IsEmpty());
  EXPECT_TRUE(fs::exists(base + ".partial"));  // it may be taken up again today
  Prune(state_dir_, 4, "", true);
  EXPECT_FALSE(fs::exists(base + ".partial"));
  EXPECT_FALSE(fs::exists(base + ".lock"));
}

TEST_F(PruneTest, AVersionWhoseManifestIsDamagedGoesUnlessItIsUsed) {
  const auto ids = StageVersions(3);
  for (const std::string& id : ids)
    std::ofstream(LayoutOf(id).manifest, std::ios::app) << "no manifest any more";
  EXPECT_THAT(ListVersions(state_dir_), IsEmpty());
  auto used = KeepVersion(state_dir_, ids[0]);
  ASSERT_TRUE(used.ok());
  Prune(state_dir_, 4, "", false);
  for (const std::string& id : ids) EXPECT_TRUE(fs::exists(LayoutOf(id).version));  // of today
  Prune(state_dir_, 4, "", true);
  EXPECT_TRUE(fs::exists(LayoutOf(ids[0]).version));  // used
  EXPECT_TRUE(fs::exists(LayoutOf(ids[1]).version));  // a link leads to it
  EXPECT_FALSE(fs::exists(LayoutOf(ids[2]).version));
  EXPECT_FALSE(fs::exists(LayoutOf(ids[2]).manifest));
}

TEST_F(PruneTest, WhatCannotBeLookedThroughStays) {
  const auto ids = StageVersions(1);
  const std::string folder = LayoutOf(ids[0]).version + "/lib";
  // As a user whom modes bind.
  const bool root = geteuid() == 0;
  constexpr uid_t kNobody = 65534;
  if (root) {
    for (const auto& item : fs::recursive_directory_iterator(state_.path()))
      ASSERT_EQ(lchown(item.path().c_str(), kNobody, kNobody), 0);
    ASSERT_EQ(chown(state_.path().c_str(), kNobody, kNobody), 0);
    ASSERT_EQ(seteuid(kNobody), 0);
  }
  chmod(folder.c_str(), 0);
  const Pruned pruned = Prune(state_dir_, 0, "", true);
  chmod(folder.c_str(), 0755);
  const Pruned then = Prune(state_dir_, 0, "", true);
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_THAT(pruned.removed, IsEmpty());
  EXPECT_THAT(pruned.kept, ElementsAre(HasSubstr("look through ")));
  EXPECT_THAT(then.removed, ElementsAre(ids[0]));
}

TEST_F(PruneTest, FilesOfOtherNamesAreLeftAlone) {
  Write(state_dir_ + "/stage/README", "mine");
  Write(state_dir_ + "/stage/" + std::string(24, 'z') + ".partial/x", "mine");
  Prune(state_dir_, 0, "", true);
  EXPECT_EQ(Read(state_dir_ + "/stage/README"), "mine");
  EXPECT_EQ(Read(state_dir_ + "/stage/" + std::string(24, 'z') + ".partial/x"), "mine");
}

}  // namespace
}  // namespace muster::stage
