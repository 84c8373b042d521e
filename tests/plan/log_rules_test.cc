#include "controller/plan/log_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/plan/recipe.h"

namespace muster::plan {
namespace {

using ::testing::HasSubstr;

TEST(ParseByteSize, UnitsAndNonsense) {
  EXPECT_EQ(*ParseByteSize("4096"), 4096U);
  EXPECT_EQ(*ParseByteSize("64KiB"), 65536U);
  EXPECT_EQ(*ParseByteSize("1.5GiB"), 1610612736U);
  EXPECT_EQ(*ParseByteSize("10MB"), 10'000'000U);
  for (const char* text : {"", "MiB", "1 MiB", "-1", "1.2.3", "0", "1XiB", "99999999TiB"}) {
    EXPECT_FALSE(ParseByteSize(text).ok()) << text;
  }
}

TEST(LogRules, Defaults) {
  const auto rules = MakeLogRules({}, {});
  ASSERT_TRUE(rules.ok());
  EXPECT_EQ(rules->quota().bytes(), 1U << 30);
  EXPECT_FALSE(rules->quota().drop_oldest());
  EXPECT_EQ(rules->rotate_bytes(), 1U << 30);
  EXPECT_FALSE(rules->has_keep_for());
  EXPECT_EQ(rules->keep_bytes(), 0U);
}

TEST(LogRules, FlagsGoOverTheRecipe) {
  LogWords recipe;
  recipe.quota = "1MiB";
  recipe.policy = "drop-oldest-with-marker";
  recipe.keep = "30d";
  LogWords flags;
  flags.quota = "none";
  flags.rotate = "never";
  const auto rules = MakeLogRules(recipe, flags);
  ASSERT_TRUE(rules.ok());
  EXPECT_FALSE(rules->has_quota());
  EXPECT_EQ(rules->rotate_bytes(), 0U);
  EXPECT_EQ(rules->keep_for().seconds(), 30 * 86400);
}

TEST(LogRules, AFlagThatMeansNothingIsNamed) {
  LogWords flags;
  flags.keep_size = "much";
  EXPECT_THAT(std::string(MakeLogRules({}, flags).status().message()),
              HasSubstr("--log-keep-size: 'much' is not a size"));
}

TEST(LogRules, RecipeErrorsHaveTheirPlace) {
  const auto error = [](const std::string& table) {
    return std::string(
        ParseRecipe("[job]\ncommand = [\"x\"]\n[logs]\n" + table, "r.toml").status().message());
  };
  EXPECT_THAT(error("quota = \"2KiB\"\n"), HasSubstr("r.toml:4:9: quota: '2KiB' is too little"));
  EXPECT_THAT(error("policy = \"drop\"\n"), HasSubstr("policy: 'drop': block or drop-oldest"));
  EXPECT_THAT(error("keep = \"30\"\n"), HasSubstr("keep: '30' is not a time"));
  EXPECT_THAT(error("rotate = true\n"), HasSubstr("rotate must be a string, not"));
  EXPECT_THAT(error("quotta = \"1MiB\"\n"), HasSubstr("quota"));
}

}  // namespace
}  // namespace muster::plan
