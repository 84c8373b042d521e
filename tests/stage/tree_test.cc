#include "common/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "common/sha256.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::TreeEntry File(const std::string& path, const std::string& content) {
  v1::TreeEntry entry;
  entry.set_path(path);
  entry.set_kind(v1::TREE_KIND_FILE);
  entry.set_mode(0644);
  entry.set_size(content.size());
  for (size_t i = 0; i < content.size(); i += kPieceBytes)
    *entry.mutable_sums() += Sha256(std::string_view(content).substr(i, kPieceBytes));
  return entry;
}

v1::TreeEntry Folder(const std::string& path) {
  v1::TreeEntry entry;
  entry.set_path(path);
  entry.set_kind(v1::TREE_KIND_FOLDER);
  entry.set_mode(0755);
  return entry;
}

absl::StatusOr<Tree> Parse(const std::vector<v1::TreeEntry>& entries) {
  v1::TreeManifest manifest;
  manifest.set_format(kTreeFormat);
  for (const auto& entry : entries) *manifest.add_entries() = entry;
  return Tree::Parse(manifest.SerializeAsString());
}

TEST(Sha256, IsTheStandardOne) {
  EXPECT_EQ(ToHex(Sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256Stream stream;
  stream.Add("a");
  stream.Add("bc");
  EXPECT_EQ(stream.Finish(), Sha256("abc"));
}

TEST(Tree, NumbersPiecesInOrderAndSkipsWhatHasNone) {
  const std::string large(2 * kPieceBytes + 5, 'x');
  const auto tree = Parse({File("a", large), Folder("b"), File("b/empty", ""), File("b/small", "s"),
                           Folder("c"), File("d", std::string(kPieceBytes, 'y'))});
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ(tree->num_pieces(), 5u);
  EXPECT_EQ(tree->files(), 4u);
  EXPECT_EQ(tree->bytes(), 3 * kPieceBytes + 6);
  EXPECT_EQ(tree->Locate(2).entry, 0u);
  EXPECT_EQ(tree->Locate(2).offset, 2 * kPieceBytes);
  EXPECT_EQ(tree->Locate(2).size, 5u);
  EXPECT_EQ(tree->Locate(3).entry, 3u);
  EXPECT_EQ(tree->Sum(3), Sha256("s"));
  EXPECT_EQ(tree->Locate(4).entry, 5u);
  EXPECT_EQ(tree->Locate(4).size, kPieceBytes);
  EXPECT_EQ(tree->FirstPiece(5), 4u);
}

TEST(Tree, RefusesWhatLeavesItsRoot) {
  for (const char* path : {"../x", "/x", "a/../x", "", ".", "a//b", "a/", "./a"}) {
    const auto tree = Parse({File(path, "x")});
    ASSERT_FALSE(tree.ok()) << path;
    EXPECT_THAT(std::string(tree.status().message()), HasSubstr("the manifest has"));
  }
  EXPECT_FALSE(Parse({File(std::string("a\0b", 3), "x")}).ok());
  EXPECT_FALSE(Parse({File(std::string(kMaxTreePath + 1, 'a'), "x")}).ok());
}

TEST(Tree, RefusesEntriesBelowFilesAndLinks) {
  EXPECT_FALSE(Parse({File("a", "x"), File("a/b", "x")}).ok());
  v1::TreeEntry link;
  link.set_path("a");
  link.set_kind(v1::TREE_KIND_SYMLINK);
  link.set_target("/etc");
  EXPECT_TRUE(Parse({link}).ok());
  EXPECT_FALSE(Parse({link, File("a/passwd", "x")}).ok());
}

TEST(Tree, RefusesSumsModesAndOrdersThatDoNotFit) {
  v1::TreeEntry file = File("a", "x");
  file.set_size(kPieceBytes + 1);
  EXPECT_FALSE(Parse({file}).ok());
  file = File("a", "x");
  file.set_mode(04755);
  EXPECT_FALSE(Parse({file}).ok());
  EXPECT_FALSE(Parse({File("b", "x"), File("a", "x")}).ok());
  EXPECT_FALSE(Parse({File("a", "x"), File("a", "x")}).ok());
  EXPECT_FALSE(Tree::Parse("no manifest").ok());
}

TEST(Tree, RefusesSizesWithoutSums) {
  v1::TreeEntry file = File("a", "");
  for (const uint64_t size : {uint64_t{1}, kPieceBytes, ~uint64_t{0},
                              ~uint64_t{0} - kPieceBytes + 2, uint64_t{1} << 63}) {
    file.set_size(size);
    EXPECT_FALSE(Parse({file}).ok()) << size;
  }
}

// Whatever bytes come: they are refused, or the tree keeps what Parse promises.
TEST(Tree, DamagedManifestsAreRefusedOrSound) {
  v1::TreeEntry link;
  link.set_path("b/link");
  link.set_kind(v1::TREE_KIND_SYMLINK);
  link.set_target("../a");
  v1::TreeManifest manifest;
  manifest.set_format(kTreeFormat);
  for (const auto& entry : {File("a", std::string(kPieceBytes + 1, 'x')), Folder("b"), link,
                            File("c.py", "text"), File("d", "")})
    *manifest.add_entries() = entry;
  const std::string good = manifest.SerializeAsString();
  std::mt19937 random(1);
  int sound = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good;
    for (uint32_t changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = random() % bytes.size();
      if (random() % 8 == 0) {
        bytes.resize(at + 1);
      } else {
        bytes[at] = static_cast<char>(bytes[at] ^ static_cast<char>(1 << random() % 8));
      }
    }
    const auto tree = Tree::Parse(bytes);
    if (!tree.ok()) continue;
    ++sound;
    uint64_t total = 0;
    for (uint32_t piece = 0; piece < tree->num_pieces(); ++piece) {
      const PiecePlace place = tree->Locate(piece);
      ASSERT_LT(place.entry, tree->num_entries());
      ASSERT_TRUE(place.size > 0 && place.size <= kPieceBytes) << place.size;
      ASSERT_EQ(tree->Sum(piece).size(), kSha256Bytes);
      total += place.size;
    }
    ASSERT_EQ(total, tree->bytes());
    for (const v1::TreeEntry& entry : tree->manifest().entries()) {
      ASSERT_FALSE(entry.path().starts_with('/'));
      ASSERT_THAT("/" + entry.path() + "/", Not(HasSubstr("/../")));
    }
  }
  EXPECT_GT(sound, 0);  // most changes of sums and letters are
}

TEST(Tree, SaysThatAManifestIsTooLarge) {
  const std::string bytes(kMaxManifestBytes + 1, '\0');
  const auto tree = Tree::Parse(bytes);
  EXPECT_TRUE(absl::IsInvalidArgument(tree.status()));
  EXPECT_THAT(std::string(tree.status().message()),
              HasSubstr("takes 257 MiB, at most 256 are possible: stage parts of the tree"));
}

TEST(Tree, KnowsContentIds) {
  EXPECT_TRUE(IsContentId(Tree::ContentId("x")));
  EXPECT_FALSE(IsContentId("../../../../../../../../../../../../../../../../../../../../../x"));
  EXPECT_FALSE(IsContentId(""));
  EXPECT_EQ(StageFolder(std::string(64, 'a')), "stage/" + std::string(24, 'a'));
}

}  // namespace
}  // namespace muster
