#include "controller/cli/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::cli {
namespace {

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
