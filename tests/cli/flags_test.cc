#include "controller/cli/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::cli {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ParseNumber, TakesDecimalDigitsInRange) {
  EXPECT_EQ(*ParseNumber("08", 1, 10), 8U);
  for (const char* wrong :
       {"", "0", "11", "-1", "+1", "0x1", "1.0", " 1", "99999999999999999999"}) {
    EXPECT_FALSE(ParseNumber(wrong, 1, 10).ok()) << wrong;
  }
  EXPECT_THAT(std::string(ParseNumber("abc", 1, 8).status().message()), HasSubstr("from 1 to 8"));
}

TEST(ParseDuration, KnowsUnits) {
  EXPECT_EQ(*ParseDuration("5s"), milliseconds(5000));
  EXPECT_EQ(*ParseDuration("5"), milliseconds(5000));
  EXPECT_EQ(*ParseDuration("500ms"), milliseconds(500));
  EXPECT_EQ(*ParseDuration("2m"), milliseconds(120'000));
  EXPECT_EQ(*ParseDuration("1h"), milliseconds(3'600'000));
  EXPECT_EQ(*ParseDuration("0s"), milliseconds(0));
  for (const char* wrong : {"", "s", "-1s", "1.5s", "5 s", "1d", "99999h"}) {
    EXPECT_FALSE(ParseDuration(wrong).ok()) << wrong;
  }
}

TEST(ParseNumberList, ExpandsRanges) {
  EXPECT_THAT(*ParseNumberList("0,17"), ElementsAre(0, 17));
  EXPECT_THAT(*ParseNumberList("2-4,0"), ElementsAre(2, 3, 4, 0));
  for (const char* wrong : {"", ",", "1,", "3-1", "a", "1-", "-1", "0-4294967295", "1-2-3"}) {
    EXPECT_FALSE(ParseNumberList(wrong).ok()) << wrong;
  }
}

TEST(ParseWordList, RefusesEmptyItems) {
  EXPECT_THAT(*ParseWordList("a,b"), ElementsAre("a", "b"));
  EXPECT_FALSE(ParseWordList("a,,b").ok());
  EXPECT_FALSE(ParseWordList("a, b").ok());
}

}  // namespace
}  // namespace muster::cli
