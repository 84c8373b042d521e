#include "controller/cli/text.h"

#include <gtest/gtest.h>

#include <random>

#include "common/utf8.h"

namespace muster::cli {
namespace {

TEST(EscapeForDisplay, LeavesTextTabsAndColoursAlone) {
  EXPECT_EQ(EscapeForDisplay("loss 9.1\tok"), "loss 9.1\tok");
  EXPECT_EQ(EscapeForDisplay("Größe 步 🚀"), "Größe 步 🚀");
  EXPECT_EQ(EscapeForDisplay("\x1b[1;31mred"), "\x1b[1;31mred\x1b[0m");
}

TEST(EscapeForDisplay, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(EscapeForDisplay("\x1b]0;title\x07"), "\\x1b]0;title\\x07");
  EXPECT_EQ(EscapeForDisplay("\x1b[2J"), "\\x1b[2J");
  EXPECT_EQ(EscapeForDisplay(std::string_view("a\0b\x7f", 4)), "a\\x00b\\x7f");
  EXPECT_EQ(EscapeForDisplay("\xC2\x9B"), "\\xc2\\x9b");  // a one-character CSI
}

TEST(EscapeForDisplay, ShowsBytesThatAreNotUtf8) {
  EXPECT_EQ(EscapeForDisplay("\xff\xfe\xc3("), "\\xff\\xfe\\xc3(");
  EXPECT_EQ(EscapeForDisplay("\xe2\x82 \xed\xa0\x80"), "\\xe2\\x82 \\xed\\xa0\\x80");
  EXPECT_EQ(EscapeForDisplay("\xf0\x9f"), "\\xf0\\x9f");
}

TEST(EscapeForDisplay, IsValidUtf8WithoutControlCharactersWhateverComesIn) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 40, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    const std::string shown = EscapeForDisplay(bytes);
    EXPECT_TRUE(IsValidUtf8(shown));
    EXPECT_EQ(shown.find('\n'), std::string::npos);
    EXPECT_TRUE(IsValidUtf8(ToValidUtf8(bytes)));
  }
}

TEST(ToValidUtf8, KeepsWhatIsValid) {
  EXPECT_EQ(ToValidUtf8("ä\xff"
                        "b"),
            "ä\xEF\xBF\xBD"
            "b");
}

TEST(DisplayWidth, CountsCodePointsWithoutColours) {
  EXPECT_EQ(DisplayWidth("\x1b[31mrot\x1b[0m"), 3U);
  EXPECT_EQ(DisplayWidth("Größe"), 5U);
}

TEST(FormatDuration, PicksTheUnit) {
  EXPECT_EQ(FormatDuration(-5), "0.0 s");
  EXPECT_EQ(FormatDuration(840'000'000), "0.8 s");
  EXPECT_EQ(FormatDuration(47'200'000'000), "47 s");
  EXPECT_EQ(FormatDuration(192'000'000'000), "3m 12s");
  EXPECT_EQ(FormatDuration(7'500'000'000'000), "2h 05m");
  EXPECT_EQ(FormatDuration(273'600'000'000'000), "3d 04h");
}

TEST(SignalName, DecodesAndSurvivesUnknownOnes) {
  EXPECT_EQ(SignalName(9), "SIGKILL");
  EXPECT_EQ(SignalName(11), "SIGSEGV");
  EXPECT_EQ(SignalName(199), "signal 199");
}

}  // namespace
}  // namespace muster::cli
