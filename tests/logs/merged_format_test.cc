#include "controller/logs/merged_format.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

namespace muster::logs {
namespace {

std::string Lines(std::string_view data, bool ended, uint32_t rank = 3, int width = 2,
                  v1::Stream stream = v1::STREAM_STDOUT) {
  std::string out;
  AppendMergedLines(data, ended, {.rank = rank, .stream = stream, .cut = false, .text = {}}, width,
                    out);
  return out;
}

TEST(MergedFormatTest, TagsHaveAFixedWidth) {
  EXPECT_EQ(Lines("a\n", false), " 3 out | a\n");
  EXPECT_EQ(Lines("a\n", false, 13), "13 out | a\n");
  EXPECT_EQ(Lines("a\n", false, 3, 2, v1::STREAM_STDERR), " 3 err | a\n");
}

TEST(MergedFormatTest, WaitsForTheEndOfALine) {
  EXPECT_EQ(Lines("a\nb", false), " 3 out | a\n");
  EXPECT_EQ(Lines("a\nb", true), " 3 out | a\n 3 out + b\n");
}

TEST(MergedFormatTest, KeepsOddBytes) {
  const std::string odd("\r 10%\r\0\xff\xfe", 9);
  EXPECT_EQ(Lines(odd + "\n", false), " 3 out | " + odd + "\n");
}

TEST(MergedFormatTest, CutsLongLines) {
  const std::string line(kMaxMergedLine + 5, 'x');
  const std::string out = Lines(line + "\n", false);
  EXPECT_EQ(out, " 3 out + " + std::string(kMaxMergedLine, 'x') + "\n 3 out | xxxxx\n");
}

TEST(MergedFormatTest, ALineOfTheGreatestLengthIsNotCut) {
  const std::string line(kMaxMergedLine, 'x');
  EXPECT_EQ(Lines(line + "\n", false), " 3 out | " + line + "\n");
}

TEST(MergedFormatTest, RefusesWhatItDidNotWrite) {
  for (const char* line : {"", "x", " 3 out ", "3  out | x", " 3 oux | x", " 3 out ? x",
                           "-3 out | x", "   out | x", " 3_out | x", " 3 out |x"}) {
    EXPECT_FALSE(ParseMergedLine(line, 2)) << line;
  }
}

// Any bytes, cut anywhere, are found again in the merged lines.
TEST(MergedFormatTest, StreamsCanBeCountedAndRebuilt) {
  const bool ok = rc::check([](const std::vector<std::string>& pieces) {
    std::string data;
    for (const std::string& piece : pieces) data += piece + "\n\n"[data.size() % 2];
    const std::string out = Lines(data, true, 7, 3, v1::STREAM_STDERR);
    std::string rebuilt;
    uint64_t bytes = 0;
    std::string_view rest = out;
    while (!rest.empty()) {
      const size_t newline = rest.find('\n');
      RC_ASSERT(newline != std::string_view::npos);
      const auto line = ParseMergedLine(rest.substr(0, newline), 3);
      RC_ASSERT(line.has_value());
      RC_ASSERT(line->rank == 7u);
      RC_ASSERT(line->stream == v1::STREAM_STDERR);
      rebuilt += line->text;
      if (!line->cut) rebuilt += '\n';
      bytes += StreamBytes(*line);
      rest.remove_prefix(newline + 1);
    }
    RC_ASSERT(rebuilt == data);
    RC_ASSERT(bytes == data.size());
  });
  EXPECT_TRUE(ok);
}

}  // namespace
}  // namespace muster::logs
