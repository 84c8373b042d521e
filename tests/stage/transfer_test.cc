#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/stage/stage_testing.h"
#include "worker/stage/layout.h"
#include "worker/stage/versions.h"

namespace muster::stage {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TransferTest : public testing::Test {
 protected:
  TransferTest() {
    Write(source_ / "bin/train", Noise(3 * kPieceBytes + 17, 1));
    chmod((source_ / "bin/train").c_str(), 0755);
    Write(source_ / "lib/a.so", Noise(2 * kPieceBytes, 2));
    Write(source_ / "train.py", "print('hello')\n");
    Write(source_ / "empty.txt", "");
    fs::create_directories(source_ / "logs/none");
    fs::create_symlink("lib/a.so", source_ / "liba");
    fs::create_symlink("/nowhere/at/all", source_ / "dangling");
    Write(source_ / "ro/file", "read only");
    chmod((source_ / "ro/file").c_str(), 0444);
    chmod((source_ / "ro").c_str(), 0555);
  }

  static std::string Version(const std::string& state, const ScannedTree& scanned) {
    return Layout(state, Tree::ContentId(scanned.manifest)).version;
  }
  static void Flip(const std::string& path, long offset) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(offset);
    const char c = static_cast<char>(file.get() ^ 1);
    file.seekp(offset);
    file.put(c);
  }

  TempDir source_;
  TempDir state_;
};

TEST_F(TransferTest, AChainOfNodesGetsItAllAndTheControllerSendsItOnce) {
  const ScannedTree scanned = Scan(source_.path());
  TestNode a(state_ / "a", scanned);
  TestNode b(state_ / "b", scanned);
  TestNode c(state_ / "c", scanned);
  for (TestNode* node : {&a, &b, &c}) node->Begin();
  c.FetchFrom(b);  // before b has anything
  b.FetchFrom(a);
  a.FetchFromController();
  for (TestNode* node : {&a, &b, &c})
    EXPECT_EQ(node->WaitForEnd().state(), v1::STAGE_STATE_DONE) << node->status().error();
  for (const char* name : {"a", "b", "c"})
    EXPECT_EQ(Listing(Version(state_ / name, scanned)), Listing(source_.path())) << name;
  EXPECT_EQ(a.bytes_from_controller(), scanned.manifest.size() + scanned.tree.bytes());
  EXPECT_EQ(b.bytes_from_controller() + c.bytes_from_controller(), 0u);
  EXPECT_EQ(c.status().bytes_fetched(), scanned.tree.bytes());
  EXPECT_TRUE(QuickCheck(state_ / "c", Tree::ContentId(scanned.manifest)).ok());
}

TEST_F(TransferTest, GoesOnWhereItWasKilled) {
  const ScannedTree scanned = Scan(source_.path());
  {
    TestNode node(state_ / "a", scanned);
    node.tamper = [&node](uint32_t piece, std::string& bytes) {
      if (piece >= 4) bytes = "";  // stops there: damaged
      (void)node;
    };
    node.Begin();
    node.FetchFromController();
    ASSERT_TRUE(node.WaitFor([&] { return !node.lost().empty(); }));
    EXPECT_THAT(node.lost().front(), HasSubstr("it sent other content for "));
    node.Kill();
  }
  EXPECT_FALSE(fs::exists(Version(state_ / "a", scanned)));  // nothing half is visible
  TestNode node(state_ / "a", scanned);
  EXPECT_EQ(node.Run().state(), v1::STAGE_STATE_DONE);
  EXPECT_EQ(node.status().bytes_had(), 3 * kPieceBytes);
  EXPECT_EQ(node.status().bytes_fetched(), scanned.tree.bytes() - 3 * kPieceBytes);
  EXPECT_EQ(Listing(Version(state_ / "a", scanned)), Listing(source_.path()));
}

TEST_F(TransferTest, WhatAnInterruptedTransferLeftDamagedIsFetchedAgain) {
  const ScannedTree scanned = Scan(source_.path());
  const Layout layout(state_ / "a", Tree::ContentId(scanned.manifest));
  Write(layout.partial + "/bin/train", Read(source_ / "bin/train") + "longer");
  Flip(layout.partial + "/bin/train", 5);
  TestNode node(state_ / "a", scanned);
  EXPECT_EQ(node.Run().state(), v1::STAGE_STATE_DONE) << node.status().error();
  EXPECT_EQ(node.status().bytes_had(), 2 * kPieceBytes + 17);
  EXPECT_EQ(Listing(layout.version), Listing(source_.path()));
}

TEST_F(TransferTest, ADamagedFileIsFoundNamedAndMended) {
  const ScannedTree scanned = Scan(source_.path());
  {
    TestNode node(state_ / "a", scanned);
    ASSERT_EQ(node.Run().state(), v1::STAGE_STATE_DONE);
  }
  const std::string version = Version(state_ / "a", scanned);
  Flip(version + "/lib/a.so", kPieceBytes + 3);
  fs::remove(version + "/train.py");
  fs::remove(version + "/liba");
  chmod((version + "/bin/train").c_str(), 0644);
  const int still_open = open((version + "/lib/a.so").c_str(), O_RDONLY);
  const std::vector<std::string> damage = {"bin/train: another mode", "lib/a.so: other content",
                                           "liba: missing", "train.py: missing"};
  {
    TestNode look(state_ / "a", scanned);
    look.begin.set_verify(true);
    look.begin.set_dry_run(true);
    EXPECT_EQ(look.Run().state(), v1::STAGE_STATE_DONE) << look.status().error();
    EXPECT_THAT(look.status().damaged(), testing::ElementsAreArray(damage));
    EXPECT_EQ(look.status().bytes_missing(), kPieceBytes + 15);
  }
  EXPECT_NE(Listing(version), Listing(source_.path()));
  TestNode mend(state_ / "a", scanned);
  mend.begin.set_verify(true);
  EXPECT_EQ(mend.Run().state(), v1::STAGE_STATE_DONE) << mend.status().error();
  EXPECT_THAT(mend.status().damaged(), testing::ElementsAreArray(damage));
  EXPECT_EQ(mend.status().bytes_fetched(), kPieceBytes + 15);  // one piece, and train.py
  EXPECT_EQ(Listing(version), Listing(source_.path()));
  // Who has the file open keeps what it had.
  char byte = 0;
  EXPECT_EQ(pread(still_open, &byte, 1, kPieceBytes + 3), 1);
  EXPECT_NE(byte, Read(source_ / "lib/a.so")[kPieceBytes + 3]);
  close(still_open);
}

TEST_F(TransferTest, AnotherVersionGivesWhatIsTheSame) {
  const ScannedTree first = Scan(source_.path());
  {
    TestNode node(state_ / "a", first);
    ASSERT_EQ(node.Run().state(), v1::STAGE_STATE_DONE);
  }
  Write(source_ / "train.py", "print('changed')\n");
  const ScannedTree second = Scan(source_.path());
  TestNode node(state_ / "a", second);
  EXPECT_EQ(node.Run().state(), v1::STAGE_STATE_DONE);
  EXPECT_EQ(node.status().bytes_fetched(), 17u);
  EXPECT_EQ(Listing(Version(state_ / "a", second)), Listing(source_.path()));
  EXPECT_EQ(Read(Version(state_ / "a", first) + "/train.py"), "print('hello')\n");
}

TEST_F(TransferTest, WhatIsThereIsNotSentAgain) {
  const ScannedTree scanned = Scan(source_.path());
  for (const uint64_t expected : {scanned.manifest.size() + scanned.tree.bytes(), uint64_t{0}}) {
    TestNode node(state_ / "a", scanned);
    EXPECT_EQ(node.Run().state(), v1::STAGE_STATE_DONE);
    EXPECT_EQ(node.bytes_from_controller(), expected);
  }
}

TEST_F(TransferTest, WithoutTheKeyNobodyGetsAnything) {
  const ScannedTree scanned = Scan(source_.path());
  TestNode a(state_ / "a", scanned);
  TestNode stranger(state_ / "b", scanned);
  stranger.begin.set_key(std::string(32, 'x'));
  ASSERT_EQ(a.Run().state(), v1::STAGE_STATE_DONE);
  stranger.Begin();
  stranger.FetchFrom(a);
  ASSERT_TRUE(stranger.WaitFor([&] { return !stranger.lost().empty(); }));
  EXPECT_THAT(stranger.lost().front(), HasSubstr("handshake"));
  EXPECT_EQ(stranger.status().pieces(), 0u);
  EXPECT_EQ(a.status().bytes_given(), 0u);
}

TEST_F(TransferTest, APeerThatGoesIsReportedAndAnotherSourceServes) {
  const ScannedTree scanned = Scan(source_.path());
  TestNode b(state_ / "b", scanned);
  {
    TestNode a(state_ / "a", scanned);
    a.Begin();
    b.Begin();
    b.FetchFrom(a);  // which gets nothing itself
    absl::SleepFor(absl::Milliseconds(50));
  }
  ASSERT_TRUE(b.WaitFor([&] { return !b.lost().empty(); }));
  b.FetchFromController();
  EXPECT_EQ(b.WaitForEnd().state(), v1::STAGE_STATE_DONE);
}

TEST_F(TransferTest, LinksSwitchAndForeignPathsStay) {
  const ScannedTree first = Scan(source_.path());
  const std::string link = state_ / "opt/run";
  TestNode one(state_ / "a", first);
  one.begin.set_link_path(link);
  ASSERT_EQ(one.Run().state(), v1::STAGE_STATE_DONE) << one.status().error();
  EXPECT_EQ(fs::read_symlink(link), Version(state_ / "a", first));
  Write(source_ / "train.py", "other");
  const ScannedTree second = Scan(source_.path());
  TestNode two(state_ / "a", second);
  two.begin.set_link_path(link);
  ASSERT_EQ(two.Run().state(), v1::STAGE_STATE_DONE);
  EXPECT_EQ(Read(link + "/train.py"), "other");
  Write(state_ / "mine/data", "precious");
  TestNode three(state_ / "a", second);
  three.begin.set_link_path(state_ / "mine");
  EXPECT_EQ(three.Run().state(), v1::STAGE_STATE_FAILED);
  EXPECT_THAT(three.status().error(), HasSubstr("move it away"));
  EXPECT_EQ(Read(state_ / "mine/data"), "precious");
}

TEST_F(TransferTest, AManifestThatIsSentAgainChangesNothing) {
  const ScannedTree scanned = Scan(source_.path());
  TestNode node(state_ / "a", scanned);
  node.Begin();
  node.FetchFromController();
  ASSERT_TRUE(node.WaitFor([&] { return node.status().pieces() > 0; }));
  ASSERT_EQ(node.WaitForEnd().state(), v1::STAGE_STATE_DONE);
  const std::string version = Version(state_ / "a", scanned);
  fs::remove(version + "/train.py");
  fs::remove(version + ".manifest");
  // Now a false one comes behind the true one, before the only missing piece.
  TestNode again(state_ / "a", scanned);
  const auto manifest_pieces = static_cast<uint32_t>(PiecesOf(scanned.manifest.size()));
  again.tamper = [&](uint32_t piece, std::string&) {
    if (piece >= manifest_pieces) again.Send(0, std::string(scanned.manifest.size(), 'x'));
  };
  EXPECT_EQ(again.Run().state(), v1::STAGE_STATE_DONE) << again.status().error();
  EXPECT_EQ(Read(version + ".manifest"), scanned.manifest);
  EXPECT_EQ(Listing(version), Listing(source_.path()));
}

TEST_F(TransferTest, APipeInPlaceOfAFileIsReplaced) {
  const ScannedTree scanned = Scan(source_.path());
  {
    TestNode node(state_ / "a", scanned);
    ASSERT_EQ(node.Run().state(), v1::STAGE_STATE_DONE);
  }
  const std::string version = Version(state_ / "a", scanned);
  fs::remove(version + "/train.py");
  ASSERT_EQ(mkfifo((version + "/train.py").c_str(), 0600), 0);
  TestNode mend(state_ / "a", scanned);
  EXPECT_EQ(mend.Run().state(), v1::STAGE_STATE_DONE) << mend.status().error();
  EXPECT_THAT(mend.status().damaged(), ElementsAre("train.py: of another kind"));
  EXPECT_EQ(Listing(version), Listing(source_.path()));
}

TEST_F(TransferTest, AFileMayHaveAnyNameBesideALink) {
  for (const char* name : {"liba.muster-new", "liba.link", "liba.new", "liba.partial"})
    Write(source_ / name, name);
  const ScannedTree scanned = Scan(source_.path());
  TestNode node(state_ / "a", scanned);
  EXPECT_EQ(node.Run().state(), v1::STAGE_STATE_DONE) << node.status().error();
  EXPECT_EQ(Listing(Version(state_ / "a", scanned)), Listing(source_.path()));
}

TEST_F(TransferTest, AManifestThatIsTooLargeIsRefused) {
  const ScannedTree scanned = Scan(source_.path());
  TestNode node(state_ / "a", scanned);
  node.begin.set_manifest_bytes(~uint64_t{0});
  node.Begin();
  EXPECT_EQ(node.WaitForEnd().state(), v1::STAGE_STATE_FAILED);
  EXPECT_THAT(node.status().error(),
              HasSubstr("takes 17592186044416 MiB, at most 256 are possible"));
}

TEST_F(TransferTest, ALinkThatCannotBeMadeIsSaidBeforeAnythingIsFetched) {
  const ScannedTree scanned = Scan(source_.path());
  Write(state_ / "mine/data", "precious");
  for (const char* link : {"mine", "mine/data/run"}) {
    TestNode node(state_ / "a", scanned);
    node.begin.set_link_path(state_ / link);
    EXPECT_EQ(node.Run().state(), v1::STAGE_STATE_FAILED) << link;
    EXPECT_THAT(node.status().error(), HasSubstr(link));
    EXPECT_EQ(node.status().bytes_fetched(), 0u);
    EXPECT_EQ(node.status().pieces(), 0u);
  }
  EXPECT_FALSE(fs::exists(state_ / "a/stage"));
}

TEST_F(TransferTest, ADiskThatDoesNotAnswerEndsIt) {
  const ScannedTree scanned = Scan(source_.path());
  const Layout layout(state_ / "a", Tree::ContentId(scanned.manifest));
  // Whoever opens this waits, as for a file server that is gone.
  fs::create_directories(layout.root);
  ASSERT_EQ(mkfifo(layout.manifest.c_str(), 0600), 0);
  TestNode node(state_ / "a", scanned, std::chrono::milliseconds(300));
  EXPECT_EQ(node.Run().state(), v1::STAGE_STATE_FAILED);
  EXPECT_THAT(node.status().error(), HasSubstr(state_ / "a: the disk has not answered for"));
  // It comes back, and what was said stays said.
  const UniqueFd other_end(open(layout.manifest.c_str(), O_RDWR | O_NONBLOCK));
  fs::remove(layout.manifest);
  absl::SleepFor(absl::Milliseconds(500));
  EXPECT_EQ(node.status().state(), v1::STAGE_STATE_FAILED);
}

TEST_F(TransferTest, OneThatWaitsForItsSourceIsHeardAndNotGivenUp) {
  const ScannedTree scanned = Scan(source_.path());
  TestNode node(state_ / "a", scanned, std::chrono::milliseconds(300));
  node.Begin();
  const uint64_t before = node.num_statuses();
  ASSERT_TRUE(node.WaitFor([&] { return node.num_statuses() > before + 2; }));
  EXPECT_EQ(node.status().state(), v1::STAGE_STATE_READING);
  node.FetchFromController();
  EXPECT_EQ(node.WaitForEnd().state(), v1::STAGE_STATE_DONE) << node.status().error();
}

TEST_F(TransferTest, NoContentIdLeavesTheStateFolder) {
  const ScannedTree scanned = Scan(source_.path());
  TestNode node(state_ / "a", scanned);
  node.begin.set_content_id("../../../../etc");
  node.Begin();
  EXPECT_EQ(node.WaitForEnd().state(), v1::STAGE_STATE_FAILED);
  EXPECT_THAT(node.status().error(), HasSubstr("is no content id"));
}

}  // namespace
}  // namespace muster::stage
