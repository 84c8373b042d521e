// Logs that are cut and packed: who reads and who writes them sees one log.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <filesystem>
#include <string>
#include <vector>

#include "controller/logs/layout.h"
#include "controller/logs/live_file.h"
#include "controller/logs/log_source.h"
#include "controller/logs/merged_file.h"
#include "controller/logs/reader.h"
#include "controller/logs/segments.h"
#include "controller/logs/stream_file.h"
#include "tests/logs/attempt.h"
#include "tests/logs/temp_dir.h"

namespace muster::logs {
namespace {

namespace fs = std::filesystem;

class RotationTest : public testing::Test {
 protected:
  // Packs at once; tests that want the plain form look before.
  Rotation Make(uint64_t bytes, bool pack) {
    return {.bytes = bytes, .pack = [this, pack](const std::string& path) {
              handed_over_.push_back(path);
              if (!pack) return;
              EXPECT_TRUE(PackSegment(path).ok());
            }};
  }
  static std::string All(const std::string& path) {
    const LogSource source(path);
    return *source.ReadAt(0, *source.Size());
  }
  static std::string Lines(int from, int to) {
    std::string text;
    for (int i = from; i < to; ++i) text += "line " + std::to_string(i) + "\n";
    return text;
  }

  TempDir dir_;
  OpenFiles open_{0};
  std::vector<std::string> handed_over_;
};

TEST_F(RotationTest, TheLiveFileKeepsItsNameAndEndsWithTheNewestLines) {
  const Rotation rotation = Make(100, true);
  StreamFile file(dir_.path(), v1::STREAM_STDOUT, rotation, open_);
  ASSERT_TRUE(file.Recover().ok());
  std::string all;
  for (int i = 0; i < 100; ++i) {
    const std::string text = Lines(i, i + 1);
    ASSERT_TRUE(file.Append(all.size(), text, {{all.size(), i + 1}}).ok());
    all += text;
  }
  EXPECT_EQ(file.size(), all.size());
  const std::string live = ReadFile(file.path());
  EXPECT_LT(live.size(), 200U);
  EXPECT_EQ(live, all.substr(all.size() - live.size()));
  const auto segments = FindSegments(file.path());
  ASSERT_GT(segments.size(), 3U);
  EXPECT_EQ(fs::path(segments[0].path).filename(), "stdout.log.000000000000000-102.zst");
  for (const Segment& segment : segments) EXPECT_TRUE(segment.packed);
  EXPECT_EQ(All(file.path()), all);
  EXPECT_GE(file.durable(), segments.back().end);
}

TEST_F(RotationTest, ARestartGoesOnAndPacksWhatWasLeft) {
  std::string all;
  {
    const Rotation rotation = Make(100, false);
    StreamFile file(dir_.path(), v1::STREAM_STDOUT, rotation, open_);
    ASSERT_TRUE(file.Recover().ok());
    for (int i = 0; i < 50; ++i) {
      const std::string text = Lines(i, i + 1);
      ASSERT_TRUE(file.Append(all.size(), text, {}).ok());
      all += text;
    }
  }
  const std::string path = dir_.path() + "/stdout.log";
  EXPECT_EQ(All(path), all);
  WriteFile(FindSegments(path)[0].path + ".zst.tmp", "torn");
  // A crash between the two steps of a rotation.
  const uint64_t base = FindSegments(path).back().end;
  fs::rename(path, SegmentPath(path, base, all.size()));
  EXPECT_EQ(All(path), all);
  handed_over_.clear();
  const Rotation rotation = Make(100, true);
  StreamFile file(dir_.path(), v1::STREAM_STDOUT, rotation, open_);
  ASSERT_TRUE(file.Recover().ok());
  EXPECT_EQ(file.size(), all.size());
  EXPECT_EQ(handed_over_.size(), FindSegments(path).size());
  // ... and one between the two steps of packing.
  const Segment first = FindSegments(path).front();
  const std::string plain = SegmentPath(path, first.begin, first.end);
  WriteFile(plain, all.substr(0, first.end));
  handed_over_.clear();
  ASSERT_TRUE(file.Recover().ok());
  EXPECT_EQ(handed_over_, std::vector<std::string>{plain});
  EXPECT_FALSE(fs::exists(plain));
  ASSERT_TRUE(file.Append(all.size(), "more\n", {}).ok());
  EXPECT_EQ(All(path), all + "more\n");
  EXPECT_EQ(ReadFile(path), "more\n");
}

TEST_F(RotationTest, ALineWithoutEndIsCutAtLast) {
  const Rotation rotation = Make(1000, true);
  StreamFile file(dir_.path(), v1::STREAM_STDOUT, rotation, open_);
  ASSERT_TRUE(file.Recover().ok());
  const std::string piece(100'000, 'x');
  std::string all;
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(file.Append(all.size(), piece, {}).ok());
    all += piece;
  }
  EXPECT_FALSE(FindSegments(file.path()).empty());
  EXPECT_EQ(All(file.path()), all);
}

TEST_F(RotationTest, AnyPartOfAPackedLogCanBeRead) {
  const std::string path = dir_.File("x.log");
  std::string all;
  for (int i = 0; all.size() < 3 * kFrameBytes; ++i) all += std::to_string(i * 7919) + " ";
  const std::string segment = SegmentPath(path, 0, all.size());
  WriteFile(segment, all);
  ASSERT_TRUE(PackSegment(segment).ok());
  ASSERT_TRUE(PackSegment(segment).ok());  // again: nothing to do
  EXPECT_FALSE(fs::exists(segment));
  WriteFile(path, "live");
  all += "live";
  const LogSource source(path);
  rc::check([&] {
    const auto from = *rc::gen::inRange<size_t>(0, all.size());
    const auto size = *rc::gen::inRange<size_t>(0, 2 * kFrameBytes);
    const auto got = source.ReadAt(from, size);
    RC_ASSERT(got.ok());
    RC_ASSERT(*got == all.substr(from, size));
  });
}

TEST_F(RotationTest, DamageIsSaidAndNothingIsMadeUp) {
  const std::string path = dir_.File("x.log");
  WriteFile(SegmentPath(path, 0, 10) + ".zst", "not zstd at all");
  WriteFile(path, "");
  EXPECT_TRUE(absl::IsDataLoss(LogSource(path).ReadAt(0, 5).status()));
}

TEST_F(RotationTest, TheMergedFileIsFoundAgainOverItsParts) {
  const Rotation rotation = Make(200, true);
  const Rotation never;
  fs::create_directory(dir_.File("0"));
  StreamFile file(dir_.File("0"), v1::STREAM_STDOUT, never, open_);
  ASSERT_TRUE(file.Recover().ok());
  const std::string path = dir_.File("tiny.log.0.h");
  std::string expected;
  int line = 0;
  for (int life = 0; life < 5; ++life) {
    MergedFile merged(path, 0, 1, 1, rotation, open_);
    ASSERT_TRUE(merged.Recover().ok());
    for (int i = 0; i < 10; ++i, ++line) {
      const std::string text = Lines(line, line + 1);
      ASSERT_TRUE(file.Append(file.size(), text, {}).ok());
      ASSERT_TRUE(merged.Merge(0, file, false).ok());
      expected += "0 out | " + text;
    }
  }
  EXPECT_GT(FindSegments(path).size(), 2U);
  EXPECT_EQ(All(path), expected);
}

TEST_F(RotationTest, ViewersSeeOneLog) {
  AttemptFiles files = MakeAttempt(dir_.path(), 1, 1);
  const std::string folder = RankDir(dir_.path(), 0, 0);
  fs::create_directories(folder);
  const Rotation rotation = Make(300, true);
  StreamFile file(folder, v1::STREAM_STDOUT, rotation, open_);
  ASSERT_TRUE(file.Recover().ok());
  std::string all;
  for (int i = 0; i < 200; ++i) {
    const std::string text = Lines(i, i + 1);
    ASSERT_TRUE(file.Append(all.size(), text, {{all.size(), 1000 + i}}).ok());
    all += text;
  }
  const auto read = [&](const v1::LogsRequest& request) {
    auto reader = Reader::Make(dir_.path(), 0, files.plan, request);
    EXPECT_TRUE((*reader)->ExtendFromFiles(true).ok());
    std::string text;
    while (true) {
      auto run = (*reader)->Next({});
      EXPECT_TRUE(run.ok()) << run.status();
      if (!run.ok() || !*run) return text;
      text += (*run)->data();
    }
  };
  EXPECT_EQ(read({}), all);
  v1::LogsRequest tail;
  tail.set_tail_lines(150);
  EXPECT_EQ(read(tail), Lines(50, 200));
  v1::LogsRequest since;
  since.set_since_ns(1020);
  EXPECT_EQ(read(since), Lines(20, 200));
  // Retention has taken the oldest parts.
  const auto segments = FindSegments(file.path());
  fs::remove(segments[0].path);
  const std::string left = all.substr(segments[0].end);
  EXPECT_EQ(read({}), left);
  tail.set_tail_lines(1000);
  EXPECT_EQ(read(tail), left);
  since.set_since_ns(1);
  EXPECT_EQ(read(since), left);
  since.set_since_ns(1100);
  EXPECT_EQ(read(since), Lines(100, 200));
}

}  // namespace
}  // namespace muster::logs
