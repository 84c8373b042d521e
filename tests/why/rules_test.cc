#include "controller/why/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "controller/why/rule_files.h"

namespace muster::why {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kGood[] = R"(
[[rule]]
name = "mine"
match = ['boom (\d+)', "bang"]
cause = "it went {1}"
advice = "look"
action = "retry"

[[rule]]
in = "kernel"
match = 'tsc'
cause = "clock"
action = "exclude-host"
)";

TEST(ParseRules, ReadsAllKeys) {
  const auto rules = ParseRules(kGood, "r.toml");
  ASSERT_TRUE(rules.ok()) << rules.status();
  ASSERT_EQ(rules->size(), 2u);
  EXPECT_EQ((*rules)[0].name, "mine");
  EXPECT_EQ((*rules)[0].place, "r.toml:2");
  EXPECT_EQ((*rules)[0].patterns.size(), 2u);
  EXPECT_EQ((*rules)[0].text, RuleText::kLog);
  EXPECT_EQ((*rules)[0].action, RuleAction::kRetry);
  EXPECT_EQ((*rules)[1].text, RuleText::kKernel);
  EXPECT_EQ((*rules)[1].action, RuleAction::kExcludeHost);
}

std::string ErrorOf(const std::string& text) {
  const auto rules = ParseRules(text, "r.toml");
  return rules.ok() ? "" : std::string(rules.status().message());
}

TEST(ParseRules, NamesThePlaceOfWhatIsWrong) {
  EXPECT_THAT(ErrorOf("[[rule]]\nmatch = 'a('\ncause = \"x\"\naction = \"stop\"\n"),
              HasSubstr("r.toml:2:9: match: missing closing parenthesis at character 3"));
  EXPECT_THAT(ErrorOf("[[rule]]\nmatch = 'a'\ncause = \"x\"\naction = \"retrey\"\n"),
              AllOf(HasSubstr("r.toml:4:10: action must be one of"), HasSubstr("'retry'")));
  EXPECT_THAT(ErrorOf("[[rule]]\nmatch = 'a'\ncause = \"x\"\n"), HasSubstr("r.toml:1:"));
  EXPECT_THAT(ErrorOf("[[rule]]\ncause = \"x\"\naction = \"stop\"\n"), HasSubstr("needs match"));
  EXPECT_THAT(ErrorOf("[[rule]]\nmatch = 'a'\naction = \"stop\"\n"), HasSubstr("needs cause"));
  EXPECT_THAT(ErrorOf("[[rule]]\nmtach = 'a'\ncause = \"x\"\naction = \"stop\"\n"),
              HasSubstr("'match'"));
  EXPECT_THAT(ErrorOf("[rule]\nmatch = 'a'\n"), HasSubstr("write [[rule]]"));
  EXPECT_THAT(ErrorOf("rules = 1\n"), HasSubstr("r.toml:1:1"));
  EXPECT_THAT(ErrorOf("[[rule\n"), HasSubstr("r.toml:1:"));
}

TEST(FillGroups, ReplacesOnlyItsOwn) {
  EXPECT_EQ(FillGroups("{1} on {host}, {2}{3}{x}", {"all", "a", "b"}), "a on {host}, b{x}");
}

class RuleFiles : public testing::Test {
 protected:
  RuleFiles() {
    char name[] = "/tmp/muster-rules-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~RuleFiles() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
  }

  std::string folder_;
};

TEST_F(RuleFiles, ABadFileIsNamedAndTheOthersCount) {
  Write("b.toml", kGood);
  Write("a.toml", "[[rule]]\nmatch = '('\ncause = \"x\"\naction = \"stop\"\n");
  Write("not-a-rule-file.txt", "?");
  const size_t shipped = LoadRules({}, {}).rules.size();
  v1::JobSpec spec;
  auto& file = *spec.add_rule_files();
  file.set_path("/job/rules.toml");
  file.set_text("[[rule]]\nmatch = 'j'\ncause = \"of the job\"\naction = \"stop\"\n");
  const RuleSet set = LoadRules(spec, {folder_, folder_ + "/absent"});
  EXPECT_EQ(set.rules.size(), 1 + 2 + shipped);
  EXPECT_EQ(set.rules[0].cause, "of the job");
  EXPECT_EQ(set.rules[1].name, "mine");
  EXPECT_THAT(set.errors, ElementsAre(HasSubstr(folder_ + "/a.toml:2:9: match:")));
}

TEST(RuleFolders, AreTheUsersAndTheSites) {
  setenv("HOME", "/home/ada", 1);
  unsetenv("XDG_CONFIG_HOME");
  EXPECT_THAT(RuleFolders(), ElementsAre("/home/ada/.config/muster/rules", "/etc/muster/rules"));
  setenv("XDG_CONFIG_HOME", "/cfg", 1);
  EXPECT_THAT(RuleFolders(), ElementsAre("/cfg/muster/rules", "/etc/muster/rules"));
}

}  // namespace
}  // namespace muster::why
