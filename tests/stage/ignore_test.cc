#include "controller/stage/ignore.h"

#include <gtest/gtest.h>

namespace muster::stage {
namespace {

IgnoreRules Rules(const char* text) {
  IgnoreRules rules;
  rules.Add(text);
  return rules;
}

struct Case {
  const char* rules;
  const char* path;
  bool is_folder;
  bool ignored;
};

// Expected values: `git check-ignore` 2.39 on the same patterns and paths.
constexpr Case kCases[] = {
    {"*.log", "a.log", false, true},
    {"*.log", "x/y/a.log", false, true},
    {"*.log", "a.log.txt", false, false},
    {"/a", "a", false, true},
    {"/a", "x/a", false, false},
    {"x/a", "x/a", false, true},
    {"x/a", "y/x/a", false, false},
    {"build/", "build", true, true},
    {"build/", "build", false, false},
    {"build/", "x/build", true, true},
    {"**/data", "data", false, true},
    {"**/data", "x/y/data", false, true},
    {"x/**", "x/a/b", false, true},
    {"x/**", "x", true, false},
    {"a/**/b", "a/b", false, true},
    {"a/**/b", "a/x/y/b", false, true},
    {"a/**/b", "a/xb", false, false},
    {"a/*/b", "a/x/b", false, true},
    {"a/*/b", "a/x/y/b", false, false},
    {"a?c", "abc", false, true},
    {"a?c", "a/c", false, false},
    {"[a-c]x", "bx", false, true},
    {"[!a-c]x", "bx", false, false},
    {"[!a-c]x", "dx", false, true},
    {"[]]x", "]x", false, true},
    {"\\*x", "*x", false, true},
    {"\\*x", "ax", false, false},
    {"\\#x", "#x", false, true},
    {"# a remark\n\nx", "# a remark", false, false},
    {"*.py\n!keep.py", "keep.py", false, false},
    {"*.py\n!keep.py", "other.py", false, true},
    {"!keep.py\n*.py", "keep.py", false, true},
    {"x \r\n", "x", false, true},
    {"a*b*c", "aXbYc", false, true},
    {"a*b*c", "aXbY", false, false},
    {"*", "anything", true, true},
};

TEST(IgnoreRules, DecideAsGitDoes) {
  for (const Case& c : kCases) {
    EXPECT_EQ(Rules(c.rules).Ignores(c.path, c.is_folder), c.ignored)
        << "pattern " << c.rules << " on " << c.path;
  }
}

TEST(IgnoreRules, LeaveOutCachesAndVersionControlByDefault) {
  const IgnoreRules rules = IgnoreRules::Defaults();
  EXPECT_TRUE(rules.Ignores(".git", true));
  EXPECT_TRUE(rules.Ignores("a/__pycache__", true));
  EXPECT_TRUE(rules.Ignores("a/b.pyc", false));
  EXPECT_TRUE(rules.Ignores("output/2026-11-30_01-16-13_train", true));
  EXPECT_FALSE(rules.Ignores("output", true));
  EXPECT_FALSE(rules.Ignores("2026-11-30_notes", true));
  EXPECT_FALSE(rules.Ignores(".gitignore", false));
  EXPECT_FALSE(rules.Ignores(".git", false));  // a worktree's: one line
}

TEST(IgnoreRules, ManyStarsEndSoon) {
  const std::string pattern = "*a*a*a*a*a*a*a*a*a*a*a*a*a*b";
  EXPECT_FALSE(Rules(pattern.c_str()).Ignores(std::string(20'000, 'a'), false));
}

}  // namespace
}  // namespace muster::stage
