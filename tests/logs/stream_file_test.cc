#include "controller/logs/stream_file.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/logs/file_size_limit.h"
#include "tests/logs/temp_dir.h"

namespace muster::logs {
namespace {

class StreamFileTest : public testing::Test {
 protected:
  TempDir dir_;
  Rotation rotation_;
  OpenFiles open_{0};
};

TEST_F(StreamFileTest, DuplicatesAndOverlapsAreHarmless) {
  StreamFile file(dir_.path(), v1::STREAM_STDOUT, rotation_, open_);
  ASSERT_TRUE(file.Recover().ok());
  ASSERT_TRUE(file.Append(0, "hello", {{0, 1}}).ok());
  ASSERT_TRUE(file.Append(0, "hello", {{0, 1}}).ok());
  ASSERT_TRUE(file.Append(3, "lo wor", {{5, 2}}).ok());
  ASSERT_TRUE(file.Append(2, "l", {}).ok());
  ASSERT_TRUE(file.Append(9, "ld", {}).ok());
  EXPECT_EQ(ReadFile(file.path()), "hello world");
  EXPECT_EQ(file.size(), 11u);
}

TEST_F(StreamFileTest, RefusesGaps) {
  StreamFile file(dir_.path(), v1::STREAM_STDOUT, rotation_, open_);
  ASSERT_TRUE(file.Recover().ok());
  ASSERT_TRUE(file.Append(0, "abc", {}).ok());
  const absl::Status gap = file.Append(4, "e", {});
  EXPECT_TRUE(absl::IsOutOfRange(gap));
  EXPECT_NE(gap.message().find("bytes 3 to 4 are missing"), std::string::npos) << gap;
  EXPECT_TRUE(absl::IsOutOfRange(file.Append(UINT64_MAX, "e", {})));
  EXPECT_EQ(ReadFile(file.path()), "abc");
}

TEST_F(StreamFileTest, GoesOnWhereAFormerProcessStopped) {
  {
    StreamFile file(dir_.path(), v1::STREAM_STDERR, rotation_, open_);
    ASSERT_TRUE(file.Recover().ok());
    ASSERT_TRUE(file.Append(0, "abc", {{0, 7}}).ok());
  }
  EXPECT_EQ(open_, 0);
  StreamFile file(dir_.path(), v1::STREAM_STDERR, rotation_, open_);
  ASSERT_TRUE(file.Recover().ok());
  EXPECT_EQ(file.size(), 3u);
  EXPECT_EQ(file.durable(), 0u);
  ASSERT_TRUE(file.Append(0, "abcdef", {{0, 7}, {3, 8}}).ok());
  EXPECT_EQ(ReadFile(file.path()), "abcdef");
  EXPECT_EQ(std::filesystem::file_size(dir_.File("stderr.times")),
            kTimesHeaderSize + 2 * kTimesRecordSize);
}

TEST_F(StreamFileTest, AFullDiskKeepsWhatGotThrough) {
  StreamFile file(dir_.path(), v1::STREAM_STDOUT, rotation_, open_);
  ASSERT_TRUE(file.Recover().ok());
  const std::string data(100, 'x');
  {
    const FileSizeLimit limit(60);
    const absl::Status full = file.Append(0, data, {{0, 1}});
    EXPECT_FALSE(full.ok());
    EXPECT_NE(full.message().find("stdout.log: File too large"), std::string::npos) << full;
    EXPECT_EQ(file.size(), 60u);
    EXPECT_FALSE(file.Append(60, data, {}).ok());
  }
  ASSERT_TRUE(file.Append(0, data, {{0, 1}}).ok());
  EXPECT_EQ(ReadFile(file.path()), data);
}

TEST_F(StreamFileTest, RewindTakesBytesAgain) {
  StreamFile file(dir_.path(), v1::STREAM_STDOUT, rotation_, open_);
  ASSERT_TRUE(file.Recover().ok());
  ASSERT_TRUE(file.Append(0, "abcdef", {{0, 1}, {4, 2}}).ok());
  file.set_durable(3);
  ASSERT_TRUE(file.Rewind().ok());
  EXPECT_EQ(file.size(), 3u);
  EXPECT_TRUE(absl::IsOutOfRange(file.Append(6, "g", {})));
  ASSERT_TRUE(file.Append(3, "defg", {{4, 2}}).ok());
  EXPECT_EQ(ReadFile(file.path()), "abcdefg");
}

TEST_F(StreamFileTest, DoesNotFollowLinks) {
  std::filesystem::create_symlink("/tmp/muster_must_not_be_made", dir_.File("stdout.log"));
  StreamFile file(dir_.path(), v1::STREAM_STDOUT, rotation_, open_);
  EXPECT_FALSE(file.Recover().ok());
  EXPECT_FALSE(std::filesystem::exists("/tmp/muster_must_not_be_made"));
}

// Chunks of a stream, repeated, cut and in any order: whatever is refused is sent again, and the
// file is equal.
TEST_F(StreamFileTest, AnyOrderOfChunksGivesTheSameFile) {
  int run = 0;
  const bool ok =
      rc::check([&](const std::string& data, const std::vector<uint8_t>& cuts, uint32_t seed) {
        std::vector<std::pair<size_t, size_t>> chunks;
        for (size_t i = 0; i + 1 < cuts.size(); i += 2) {
          const size_t begin = data.empty() ? 0 : cuts[i] % data.size();
          chunks.emplace_back(begin, std::min<size_t>(cuts[i + 1] % 16, data.size() - begin));
        }
        for (size_t i = 0; i < data.size(); i += 7) {
          chunks.emplace_back(i, std::min<size_t>(7, data.size() - i));
        }
        const std::string folder = dir_.File(std::to_string(run++));
        std::filesystem::create_directory(folder);
        StreamFile file(folder, v1::STREAM_STDOUT, rotation_, open_);
        RC_ASSERT(file.Recover().ok());
        std::shuffle(chunks.begin(), chunks.end(), std::mt19937(seed));
        for (size_t round = 0; file.size() < data.size(); ++round) {
          RC_ASSERT(round <= chunks.size());
          for (const auto& [begin, size] : chunks) {
            const bool gap = begin > file.size();
            const absl::Status status =
                file.Append(begin, std::string_view(data).substr(begin, size), {{begin, 1}});
            RC_ASSERT(status.ok() != gap);
          }
        }
        RC_ASSERT(ReadFile(file.path()) == data);
      });
  EXPECT_TRUE(ok);
}

}  // namespace
}  // namespace muster::logs
