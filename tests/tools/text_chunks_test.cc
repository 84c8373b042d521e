#include "trainer/tools/text_chunks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/golden.h"
#include "trainer/data/data_error.h"

namespace muster::tools {
namespace {

using ::testing::ElementsAre;

std::vector<Line> SplitLines(const Chunk& chunk) {
  std::vector<Line> lines;
  LineSplitter splitter(chunk);
  for (Line line; splitter.Next(line);) lines.push_back(line);
  return lines;
}

class TextChunksTest : public ::testing::Test {
 protected:
  // "number:text" of every line, read in chunks of about `target` bytes.
  std::vector<std::string> Lines(const std::string& input, InputFormat format, size_t target) {
    const std::string path = (folder_.path() / "in").string();
    data::testing::WriteFile(path, input);
    ChunkReader reader({path}, {.format = format, .target = target});
    std::vector<std::string> lines;
    chunks_ = 0;
    for (Chunk chunk; reader.Next(chunk); ++chunks_) {
      for (const Line& line : SplitLines(chunk)) {
        lines.push_back(std::to_string(line.number) + ":" + std::string(line.text));
      }
    }
    return lines;
  }

  data::testing::TempFolder folder_;
  int chunks_ = 0;
};

TEST_F(TextChunksTest, LinesDoNotDependOnTheChunkSize) {
  const std::string input = "a\nbb\r\nccc\rd\r\r\n\n\re\n\nlast";
  const auto whole = Lines(input, InputFormat::kJsonl, 1000);
  EXPECT_THAT(whole,
              ElementsAre("1:a", "2:bb", "3:ccc", "4:d", "5:", "6:", "7:", "8:e", "9:", "10:last"));
  for (size_t target = 1; target < 20; ++target) {
    EXPECT_EQ(Lines(input, InputFormat::kJsonl, target), whole) << target;
  }
  EXPECT_GT((Lines(input, InputFormat::kJsonl, 2), chunks_), 2);
}

TEST_F(TextChunksTest, NoLineAfterTheLastBreak) {
  EXPECT_THAT(Lines("", InputFormat::kJsonl, 10), ElementsAre());
  EXPECT_THAT(Lines("x\n", InputFormat::kJsonl, 10), ElementsAre("1:x"));
  EXPECT_THAT(Lines("\n", InputFormat::kJsonl, 10), ElementsAre("1:"));
  EXPECT_THAT(Lines("x\r", InputFormat::kJsonl, 10), ElementsAre("1:x"));
}

TEST_F(TextChunksTest, TextIsCutBetweenDocumentsOnly) {
  const std::string path = (folder_.path() / "in").string();
  for (const std::string input : {"a\nb\n\nc\r\n\r\nd\ne\nf\n\n\ng", "a\rb\r\rc\rd\r\r\re",
                                  "a\n\rb\r\r\nc\r\n\rd\n\r\ne\r\r"}) {
    const auto whole = Lines(input, InputFormat::kText, 1000);
    for (size_t target = 1; target < 20; ++target) {
      EXPECT_EQ(Lines(input, InputFormat::kText, target), whole) << target;
      if (target == 1) {
        EXPECT_GT(chunks_, 2) << input;
      }
      ChunkReader reader({path}, {.format = InputFormat::kText, .target = target});
      std::string all;
      for (Chunk chunk; reader.Next(chunk);) {
        all += chunk.bytes.view();
        const bool at_end = all.size() == input.size();
        EXPECT_TRUE(at_end || SplitLines(chunk).back().text.empty()) << target;
      }
      EXPECT_EQ(all, input);
    }
  }
}

// Quadratic time would be minutes.
TEST_F(TextChunksTest, TimeIsLinearInTheNumberOfCarriageReturns) {
  constexpr size_t kSize = 4 << 20;
  for (const InputFormat format : {InputFormat::kJsonl, InputFormat::kText, InputFormat::kLines}) {
    for (const size_t target : {kSize / 4, kSize * 2}) {
      EXPECT_EQ(Lines(std::string(kSize, '\r'), format, target).size(), kSize);
      EXPECT_EQ(chunks_, target < kSize ? 5 : 1);
    }
  }
}

TEST_F(TextChunksTest, ReadingGoesOnFromTheEndOfAnyChunk) {
  std::vector<std::string> paths;
  for (const std::string text : {"a\nbb\r\nccc\rd", "", "\n\ne\n", "f"}) {
    paths.push_back((folder_.path() / std::to_string(paths.size())).string());
    data::testing::WriteFile(paths.back(), text);
  }
  const ChunkOptions options{.target = 2};
  const auto read_from = [&](const InputPosition& start) {
    std::vector<std::pair<InputPosition, std::string>> chunks;
    ChunkReader reader(paths, options, start);
    for (Chunk chunk; reader.Next(chunk);) {
      std::string lines = std::to_string(chunk.file) + "/" + std::to_string(chunk.first_index);
      for (const Line& line : SplitLines(chunk)) {
        lines += " " + std::to_string(line.number) + ":" + std::string(line.text);
      }
      chunks.emplace_back(chunk.end, lines);
    }
    return chunks;
  };
  const auto whole = read_from({});
  ASSERT_GT(whole.size(), 5U);
  EXPECT_EQ(whole.back().second, "3/7 1:f");
  for (size_t i = 0; i < whole.size(); ++i) {
    const auto rest = read_from(whole[i].first);
    const std::vector expected(whole.begin() + static_cast<std::ptrdiff_t>(i) + 1, whole.end());
    EXPECT_EQ(rest, expected) << i;
  }
}

TEST_F(TextChunksTest, LinesThatAreTooLongAreDroppedOrRefused) {
  const std::string path = (folder_.path() / "in").string();
  const std::string longer(100, 'x');
  for (const std::string end : {"\n", "\r", "\r\n"}) {
    data::testing::WriteFile(path, "a" + end + longer + end + "b" + end + longer);
    for (size_t target = 1; target < 12; ++target) {
      ChunkOptions options{.target = target, .max_document = 20, .drop_long = true};
      std::string seen;
      ChunkReader reader({path}, options);
      for (Chunk chunk; reader.Next(chunk);) {
        if (!chunk.problem.empty()) seen += std::to_string(chunk.first_line) + ":long ";
        for (const Line& line : SplitLines(chunk)) {
          seen += std::to_string(line.number) + ":" + std::string(line.text) + " ";
        }
      }
      EXPECT_EQ(seen, "1:a 2:long 3:b 4:long ") << target;
      options.drop_long = false;
      ChunkReader strict({path}, options);
      EXPECT_THROW(for (Chunk chunk; strict.Next(chunk);){}, data::DataError);
    }
  }
}

}  // namespace
}  // namespace muster::tools
