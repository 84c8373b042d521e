#include "controller/cli/log_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

LogLine Line(uint32_t rank, std::string_view text, v1::Stream stream = v1::STREAM_STDOUT) {
  LogLine line;
  line.rank = rank;
  line.host = rank < 2 ? "node01" : "node02";
  line.stream = stream;
  line.text = text;
  return line;
}

TEST(MaskLine, LeavesOutWhatDiffersBetweenRanks) {
  EXPECT_EQ(MaskLine("iteration   12/ 100 | loss: 9.13E+00 | -0.5 | +3", ""),
            "iteration #/ # | loss: # | # | #");
  EXPECT_EQ(MaskLine("device 0x7f3A at 10.0.0.2:29500", ""), "device # at #:#");
  EXPECT_EQ(MaskLine("rank on node01 (node01.x)", "node01"), "rank on <host> (<host>.x)");
  EXPECT_EQ(MaskLine(" 5%\r 50%\r100%\r", ""), "#%");
  EXPECT_EQ(MaskLine("a-5 v1.2", ""), "a-# v#");
  EXPECT_EQ(MaskLine("1e 2e+ .5 5.", ""), "#e #e+ # #.");
  EXPECT_EQ(MaskLine("", "h"), "");
}

TEST(LogDiff, GroupsRanksAndShowsTheOddOnes) {
  LogDiff diff;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    for (int step = 0; step < (rank == 3 ? 2 : 3); ++step) {
      diff.Add(Line(rank, "step " + std::to_string(step) + " of rank " + std::to_string(rank)));
    }
  }
  diff.Add(Line(3, "Traceback", v1::STREAM_STDERR));
  const auto groups = diff.Groups();
  ASSERT_THAT(groups, SizeIs(2));
  EXPECT_THAT(groups[0].ranks, ElementsAre(0, 1, 2));
  EXPECT_THAT(groups[0].odd, IsEmpty());
  EXPECT_THAT(groups[1].ranks, ElementsAre(3));
  ASSERT_THAT(groups[1].odd, SizeIs(2));
  EXPECT_EQ(groups[1].odd[0].more, -1);
  EXPECT_EQ(groups[1].odd[0].example, "step 0 of rank 0");
  EXPECT_EQ(groups[1].odd[1].more, 1);
  EXPECT_EQ(groups[1].odd[1].stream, v1::STREAM_STDERR);
  const std::string text = diff.Text(Style());
  EXPECT_THAT(text, HasSubstr("ranks 0-2 (node01 ...): the same 3 lines, numbers aside\n"));
  EXPECT_THAT(text, HasSubstr("rank 3 (node02): 3 lines, other than rank 0:\n"));
  EXPECT_THAT(text, HasSubstr("    -1x out  step 0 of rank 0\n"));
  EXPECT_THAT(text, HasSubstr("    +1x err  Traceback\n"));
}

TEST(LogDiff, TheSameWordsOnAnotherStreamAreOtherLines) {
  LogDiff diff;
  diff.Add(Line(0, "x"));
  diff.Add(Line(1, "x", v1::STREAM_STDERR));
  EXPECT_THAT(diff.Groups(), SizeIs(2));
}

TEST(LogDiff, MoreKindsThanItKeepsAreCounted) {
  LogDiff diff;
  std::string word;
  for (size_t i = 0; i < LogDiff::kMaxKinds + 7; ++i) {
    word.clear();
    for (size_t n = i; n > 0; n /= 26) word += static_cast<char>('a' + n % 26);
    diff.Add(Line(0, word + "!"));
  }
  EXPECT_GE(diff.not_compared(), 7U);
  EXPECT_THAT(diff.Text(Style()), HasSubstr("not compared: there are more than 50000 kinds"));
}

}  // namespace
}  // namespace muster::cli
