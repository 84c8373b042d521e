#include "controller/plan/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace muster::plan {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string Error(std::string_view text) {
  const auto recipe = ParseRecipe(text, "r.toml");
  EXPECT_FALSE(recipe.ok()) << text;
  return std::string(recipe.status().message());
}

TEST(Recipe, IsReadWhole) {
  const auto recipe = ParseRecipe(R"(
[job]
name = "tiny"
command = ["muster-train", "--mock-data"]
grace = "1m30s"
working_dir = "/data"

[parallel]
tp = 2
pp = 2
cp = 1
vp = 2
micro_batch = 1
num_microbatches = 8

[flags]
num-layers = 2
lr = 1.5e-4
bf16 = true
split = "99,1,0"
data-path = [0.7, "a", 3, "b"]
adam-eps = 1e-8

[env]
NCCL_DEBUG = "INFO"
OMP_NUM_THREADS = 2

[secrets]
WANDB_API_KEY = { file = "~/.wandb" }
HF_TOKEN = { env = "HF_TOKEN" }

[checks]
skip = ["clock"]

[restart]
[logs]
)",
                                  "dir/r.toml");
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  EXPECT_EQ(recipe->name, "tiny");
  EXPECT_THAT(recipe->command, ElementsAre("muster-train", "--mock-data"));
  EXPECT_EQ(recipe->grace, absl::Seconds(90));
  EXPECT_EQ(recipe->working_dir, "/data");
  EXPECT_EQ(recipe->parallel.vp(), 2U);
  EXPECT_EQ(recipe->parallel.num_microbatches(), 8U);
  ASSERT_EQ(recipe->flags.size(), 6U);  // in file order
  EXPECT_EQ(recipe->flags[0].name(), "num-layers");
  EXPECT_THAT(recipe->flags[1].values(), ElementsAre("0.00015"));
  EXPECT_EQ(recipe->flags[2].values_size(), 0);
  EXPECT_THAT(recipe->flags[3].values(), ElementsAre("99,1,0"));
  EXPECT_THAT(recipe->flags[4].values(), ElementsAre("0.7", "a", "3", "b"));
  EXPECT_THAT(recipe->flags[5].values(), ElementsAre("1e-08"));
  ASSERT_EQ(recipe->env.size(), 2U);
  EXPECT_EQ(recipe->env[1].value(), "2");
  ASSERT_EQ(recipe->secrets.size(), 2U);
  EXPECT_EQ(recipe->secrets[0].file, "~/.wandb");
  EXPECT_EQ(recipe->secrets[1].env, "HF_TOKEN");
  EXPECT_THAT(recipe->skip_checks, ElementsAre("clock"));
}

TEST(Recipe, GraceInSeconds) {
  EXPECT_EQ(ParseRecipe("[job]\ngrace = 5\n", "r")->grace, absl::Seconds(5));
  EXPECT_EQ(ParseRecipe("[job]\ngrace = 0.5\n", "r")->grace, absl::Milliseconds(500));
  for (const char* bad : {"-1", "nan", "inf", "90000", "true", "\"soon\"", "\"25h\"", "[1]"}) {
    EXPECT_FALSE(ParseRecipe(std::string("[job]\ngrace = ") + bad + "\n", "r").ok()) << bad;
  }
}

TEST(Recipe, UnknownNamesAreErrorsWithPositionAndNearest) {
  EXPECT_EQ(Error("[job]\nnmae = \"x\"\n"),
            "r.toml:2:1: unknown key 'nmae' in [job]; did you mean 'name'?");
  EXPECT_EQ(Error("\n[paralel]\ntp = 1\n"),
            "r.toml:2:2: unknown table 'paralel' in the recipe; did you mean 'parallel'?");
  EXPECT_THAT(Error("[parallel]\nmicro_batches = 1\n"), HasSubstr("did you mean 'micro_batch'?"));
  EXPECT_THAT(Error("[checks]\nskp = []\n"), HasSubstr("'skip'"));
  EXPECT_THAT(Error("[restart]\nmax = 3\n"),
              HasSubstr("r.toml:2:1: unknown key 'max' in [restart]"));
  EXPECT_THAT(Error("[logs]\nx = 3\n"), HasSubstr("[logs]"));
  EXPECT_THAT(Error("tp = 1\n"), HasSubstr("unknown key 'tp' in the recipe"));
  EXPECT_THAT(Error("[secrets]\nA = { flie = \"x\" }\n"), HasSubstr("did you mean 'file'?"));
}

TEST(Recipe, WrongTypes) {
  EXPECT_EQ(
      Error("[job]\ncommand = \"python train.py\"\n"),
      "r.toml:2:11: command must be a list of strings: command = [\"...\", \"...\"], not a string");
  EXPECT_THAT(Error("[job]\ncommand = [\"a\", 1]\n"), HasSubstr("r.toml:2:17"));
  EXPECT_THAT(Error("[job]\nname = 5\n"), HasSubstr("name must be a string, not a whole number"));
  EXPECT_THAT(Error("[job]\nname = \"a/b\"\n"), HasSubstr("r.toml:2:8: bad job name 'a/b'"));
  EXPECT_THAT(Error("[parallel]\ntp = \"2\"\n"), HasSubstr("tp must be a whole number"));
  EXPECT_THAT(Error("[parallel]\ntp = 0\n"), HasSubstr("from 1, not 0"));
  EXPECT_THAT(Error("[parallel]\ntp = -1\n"), HasSubstr("from 1, not -1"));
  EXPECT_THAT(Error("[parallel]\ntp = 5000000000\n"), HasSubstr("tp must be"));
  EXPECT_THAT(Error("job = 3\n"), HasSubstr("job must be a table: [job], not a whole number"));
  EXPECT_THAT(Error("[[job]]\n"), HasSubstr("not a list"));
  EXPECT_THAT(Error("[flags]\nbf16 = false\n"), HasSubstr("leave the key out"));
  EXPECT_THAT(Error("[flags]\nx = [true]\n"), HasSubstr("not true or false"));
  EXPECT_THAT(Error("[flags]\nx = []\n"), HasSubstr("empty list"));
  EXPECT_THAT(Error("[flags]\nx = 2026-01-01\n"), HasSubstr("not a date or time"));
  EXPECT_THAT(Error("[flags]\n--lr = 1\n"), HasSubstr("without dashes"));
  EXPECT_THAT(Error("[env]\nA = true\n"), HasSubstr("must be a string"));
}

TEST(Recipe, ExactlyOneBatch) {
  EXPECT_THAT(Error("[parallel]\nglobal_batch = 8\nnum_microbatches = 8\n"),
              AllOf(HasSubstr("r.toml:3:1"), HasSubstr("exactly one")));
}

TEST(Recipe, SecretsAreNeverLiteralNorRepeated) {
  const std::string error = Error("[secrets]\nTOKEN = \"hunter2\"\n");
  EXPECT_THAT(error,
              AllOf(HasSubstr("r.toml:2:9"), HasSubstr("file = "), Not(HasSubstr("hunter2"))));
  EXPECT_THAT(Error("[secrets]\nTOKEN = {}\n"), HasSubstr("exactly one of file and env"));
  EXPECT_THAT(Error("[secrets]\nTOKEN = { file = \"a\", env = \"b\" }\n"),
              HasSubstr("exactly one"));
}

TEST(Recipe, AllComplaintsInFileOrder) {
  EXPECT_EQ(Error("[parallel]\ntp = 0\n[job]\nx = 1\ny = 2\n"),
            "r.toml:2:6: tp must be a whole number from 1, not 0\n"
            "r.toml:4:1: unknown key 'x' in [job]\n"
            "r.toml:5:1: unknown key 'y' in [job]");
}

TEST(Recipe, SyntaxErrorsHaveAPosition) {
  EXPECT_THAT(Error("[job\nname = 1"), HasSubstr("r.toml:1:"));
  EXPECT_THAT(Error("[job]\nname = \"a\"\nname = \"b\"\n"), HasSubstr("r.toml:3:"));
  EXPECT_THAT(Error("\xFF\xFE"), HasSubstr("r.toml:1:1"));
}

TEST(Recipe, NonAsciiOnlyInStringsAndComments) {
  EXPECT_THAT(Error("[job]\nname\xC2\xA0= \"x\"\n"), HasSubstr("r.toml:2:5: non-ASCII character"));
  EXPECT_THAT(Error("[flags]\na = \"\xC3\xA9\" \xCA\x95\n"), HasSubstr("r.toml:2:9: non-ASCII"));
  EXPECT_THAT(Error("[flags]\na = \"\"\"x\"\"\"\"\" \xCA\x95\n"), HasSubstr("non-ASCII"));
  EXPECT_THAT(Error("[flags]\na = \"x\n\xCA\x95\n"), HasSubstr("r.toml:3:1: non-ASCII"));
  // No string begins in the middle of a value.
  EXPECT_THAT(Error("[flags]\na = 1&\"\"\"&\xEF\xBA\xBF\n"), HasSubstr("r.toml:2:6: "));
  EXPECT_THAT(Error("[flags]\na = 1=\"\xC3\xA9\"\n"), HasSubstr("r.toml:2:6: "));
  EXPECT_THAT(Error("[%"), HasSubstr("r.toml:1:2: "));
  const auto recipe = ParseRecipe(
      "\xEF\xBB\xBF# caf\xC3\xA9 \"\n[env]\nA = \"\xC3\xA9\\\" \xC3\xA9\" # \xC3\xA9\n"
      "B = '\xC3\xA9\\'\nC = \"\"\"\xC3\xA9\n\\\"\"\"\xC3\xA9\"\"\"\n"
      "D = '''\xC3\xA9\n'''\n",
      "r.toml");
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  EXPECT_EQ(recipe->env[0].value(), "\xC3\xA9\" \xC3\xA9");
  EXPECT_EQ(recipe->env[2].value(), "\xC3\xA9\n\"\"\"\xC3\xA9");
}

RC_GTEST_PROP(RecipeProperty, AnyBytesGiveARecipeOrAPosition, ()) {
  const auto parts = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
      "[job]\n", "[parallel]\n", "[flags]\n", "[env]\n", "[secrets]\n", "[checks]\n", "name", "tp",
      "skip", " = ", "\"x\"", "1", "-1", "1.5", "true", "[", "]", "{", "}", ",", "\n", "#",
      "file = \"x\"", "'", "\\", "global_batch = 1\n", "a.b = 2\n", "\xC3", "2026-01-01"));
  std::string text;
  for (const std::string& part : parts) text += part;
  const auto recipe = ParseRecipe(text, "r.toml");
  if (!recipe.ok()) RC_ASSERT(recipe.status().message().find("r.toml:") == 0U);
}

}  // namespace
}  // namespace muster::plan
