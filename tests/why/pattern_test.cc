#include "controller/why/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::why {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Pattern, FindsTheFirstMatchWithItsGroups) {
  const auto pattern = Pattern::Compile("^E: (\\w+)(?: (x))?$");
  ASSERT_TRUE(pattern.ok());
  const auto found = pattern->Search("a\nE: one\nE: two x\n");
  ASSERT_TRUE(found.ok() && *found);
  EXPECT_THAT((*found)->groups, ElementsAre("E: one", "one", ""));
}

TEST(Pattern, NothingIsNoError) {
  const auto found = Pattern::Compile("x")->Search("abc");
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(*found);
  EXPECT_FALSE(*Pattern::Compile("x")->Matches("abc"));
  EXPECT_TRUE(*Pattern::Compile("(a)(b)(c)")->Matches("abc"));
}

TEST(Pattern, TheTextIsBytes) {
  const auto found =
      Pattern::Compile("b.c")->Search(std::string_view("\xff\0b\xc3"
                                                       "c",
                                                       5));
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found->has_value());
}

TEST(Pattern, AWrongOneNamesTheCharacter) {
  const auto status = Pattern::Compile("ab(c").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("at character 5 of 'ab(c'"));
  EXPECT_FALSE(Pattern::Compile(std::string(5000, 'a')).ok());
}

TEST(Pattern, ASearchThatWouldTakeForEverIsGivenUp) {
  const auto pattern = Pattern::Compile("(a+)+$");
  std::string text(64, 'a');
  text.push_back('b');
  EXPECT_EQ(pattern->Search(text).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(pattern->Matches(text).status().code(), absl::StatusCode::kResourceExhausted);
  // Deep instead of long.
  const auto deep = Pattern::Compile("(?:(?:a|b)(?:c|d)?)*x");
  EXPECT_FALSE(deep->Search(std::string(60'000, 'a')).ok() &&
               deep->Search(std::string(60'000, 'a'))->has_value());
}

}  // namespace
}  // namespace muster::why
