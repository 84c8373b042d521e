#include "controller/plan/env_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "controller/plan/secrets.h"

namespace muster::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

// Name and value of each line; "<own>" for the submitter's.
std::vector<std::pair<std::string, std::string>> Parse(const std::string& text) {
  const auto lines = ParseEnvFile(text, "f");
  EXPECT_TRUE(lines.ok()) << lines.status();
  std::vector<std::pair<std::string, std::string>> out;
  if (!lines.ok()) return out;
  for (const auto& line : *lines) out.emplace_back(line.name, line.value.value_or("<own>"));
  return out;
}

std::string Error(const std::string& text) {
  return std::string(ParseEnvFile(text, "f").status().message());
}

TEST(ParseEnvFile, WhatDeepSpeedTakesIsTaken) {
  EXPECT_THAT(Parse("NCCL_IB_DISABLE=1\nLD_LIBRARY_PATH=/a:/b\nX=a=b=c\n"),
              ElementsAre(Pair("NCCL_IB_DISABLE", "1"), Pair("LD_LIBRARY_PATH", "/a:/b"),
                          Pair("X", "a=b=c")));
  EXPECT_THAT(Parse(" A = 1 \r\nB=\n C=two words"),
              ElementsAre(Pair("A", "1"), Pair("B", ""), Pair("C", "two words")));
}

TEST(ParseEnvFile, WhatDeepSpeedFailsOnIsTakenToo) {
  EXPECT_THAT(Parse("# a comment\n\n   \nA=1\n  # another\n"), ElementsAre(Pair("A", "1")));
  EXPECT_THAT(Parse("\xef\xbb\xbf"
                    "A=1"),
              ElementsAre(Pair("A", "1")));
  EXPECT_THAT(Parse(""), IsEmpty());
}

TEST(ParseEnvFile, ReadsAssignmentsOfAShell) {
  EXPECT_THAT(Parse("export A=1\nexport\tB='a b'\nexportC=3\n"),
              ElementsAre(Pair("A", "1"), Pair("B", "a b"), Pair("exportC", "3")));
  EXPECT_THAT(Parse(R"(A="a \"b\" \\ \n $HOME `x`" # why)"),
              ElementsAre(Pair("A", R"(a "b" \ \n $HOME `x`)")));
  EXPECT_THAT(Parse(R"(A='a "b" \ $HOME' )"), ElementsAre(Pair("A", R"(a "b" \ $HOME)")));
  EXPECT_THAT(Parse("A=''\nB=\"\"\n"), ElementsAre(Pair("A", ""), Pair("B", "")));
}

TEST(ParseEnvFile, OnlyABlankAndAHashBeginAComment) {
  EXPECT_THAT(Parse("A=1 # one\nB=a#b\nC=#x\nD='# no'\n"),
              ElementsAre(Pair("A", "1"), Pair("B", "a#b"), Pair("C", ""), Pair("D", "# no")));
}

TEST(ParseEnvFile, JsonKeepsItsQuotes) {
  EXPECT_THAT(Parse(R"(A={"a": [1, "b"]})"
                    "\nB='{\"a\": 1}'\n"),
              ElementsAre(Pair("A", R"({"a": [1, "b"]})"), Pair("B", R"({"a": 1})")));
}

TEST(ParseEnvFile, ANameAloneIsTheSubmittersOwn) {
  EXPECT_THAT(Parse("HF_TOKEN\nexport X # mine\n"),
              ElementsAre(Pair("HF_TOKEN", "<own>"), Pair("X", "<own>")));
}

TEST(ParseEnvFile, ErrorsNameTheLineAndTheFix) {
  EXPECT_EQ(Error("A=1\nB='x\n"),
            "f:2: the value's ' is not closed on this line; a value is one line");
  EXPECT_THAT(Error("A=\"x\" y"), HasSubstr("f:1: text after the closing \" of the value"));
  EXPECT_THAT(Error("a b c"), HasSubstr("'a b c' is not a name"));
  EXPECT_THAT(Error("export #A=1"), HasSubstr("'#A' is not a name"));
  EXPECT_THAT(Error("=1"), HasSubstr("f:1: '' is not a name"));
  EXPECT_THAT(Error("1A=1"), HasSubstr("not a name"));
  EXPECT_THAT(Error("\nRANK=3"), HasSubstr("f:2: RANK is set by muster for each rank; remove"));
  EXPECT_THAT(Error("MUSTER_X=3"), HasSubstr("MUSTER_X is set by muster"));
  EXPECT_THAT(Error(std::string("A=\0b", 4)), HasSubstr("a NUL byte"));
  EXPECT_THAT(Error("a\x1b[2J b=1"), HasSubstr(R"('a\x1b[2J b')"));
  std::string many;
  for (int i = 0; i < 100; ++i) many += "?\x01=\n";
  const std::string errors = Error(many);
  EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 19);
}

class EnvFilesTest : public testing::Test {
 protected:
  EnvFilesTest() {
    around_.working_dir = "/run";
    around_.get_env = [this](const std::string& name) -> std::optional<std::string> {
      const auto it = env_.find(name);
      return it == env_.end() ? std::nullopt : std::optional<std::string>(it->second);
    };
    around_.read_file = [this](const std::string& path) -> absl::StatusOr<std::string> {
      const auto it = files_.find(path);
      if (it == files_.end()) return absl::NotFoundError("open " + path + ": No such file");
      return it->second;
    };
    around_.is_executable = [](const std::string&) { return false; };
    around_.note = [this](const std::string& text) { notes_.push_back(text); };
  }

  // The value that ranks get for each name.
  std::map<std::string, std::string> Environment(const Recipe* recipe = nullptr,
                                                 Overrides overrides = {}) {
    overrides.command = {"x"};
    const auto spec = BuildJobSpec(recipe, overrides, around_);
    EXPECT_TRUE(spec.ok()) << spec.status();
    std::map<std::string, std::string> out;
    if (!spec.ok()) return out;
    for (const v1::EnvVar& v : spec->env()) out[v.name()] = v.value();
    for (const v1::EnvVar& v : spec->secrets()) out[v.name()] = "secret " + v.value();
    return out;
  }

  Surroundings around_;
  std::map<std::string, std::string> env_ = {{"HOME", "/home"}};
  std::map<std::string, std::string> files_;
  std::vector<std::string> notes_;
};

TEST_F(EnvFilesTest, EachSourceIsOverTheOneBefore) {
  const std::vector<std::string> sources = {"/home/.deepspeed_env",
                                            "/run/.deepspeed_env",
                                            "/home/.muster_env",
                                            "/run/.muster_env",
                                            "recipe",
                                            "/run/a.env",
                                            "/b.env",
                                            "--env"};
  // Variable Vi is set by source i and all before it.
  Recipe recipe;
  Overrides overrides;
  overrides.env_files = {"a.env", "/b.env"};
  for (size_t i = 0; i < sources.size(); ++i) {
    for (size_t v = i; v < sources.size(); ++v) {
      const std::string line = "V" + std::to_string(v) + "=" + sources[i];
      if (sources[i] == "recipe") {
        recipe.env.emplace_back().set_name("V" + std::to_string(v));
        recipe.env.back().set_value("recipe");
      } else if (sources[i] == "--env") {
        overrides.env.push_back(line);
      } else {
        files_[sources[i]] += line + "\n";
      }
    }
  }
  const auto environment = Environment(&recipe, overrides);
  for (size_t i = 0; i < sources.size(); ++i) {
    EXPECT_EQ(environment.at("V" + std::to_string(i)), sources[i]);
  }
  EXPECT_EQ(notes_.size(), 6U);
  EXPECT_EQ(notes_[0], "8 variables of /home/.deepspeed_env");
}

TEST_F(EnvFilesTest, TheHomeFolderIsReadOnceEvenAsWorkingFolder) {
  around_.working_dir = "/home";
  files_["/home/.muster_env"] = "A=1";
  EXPECT_THAT(Environment(), ElementsAre(Pair("A", "1")));
  EXPECT_THAT(notes_, ElementsAre("1 variable of /home/.muster_env"));
}

TEST_F(EnvFilesTest, DeepSpeedsFileMayHaveAnotherName) {
  env_["DS_ENV_FILE"] = ".other";
  files_["/home/.other"] = "A=1";
  files_["/run/.deepspeed_env"] = "B=1";
  EXPECT_THAT(Environment(), ElementsAre(Pair("A", "1")));
  env_["DS_ENV_FILE"] = "/etc/ds";
  files_["/etc/ds"] = "C=1";
  EXPECT_THAT(Environment(), ElementsAre(Pair("C", "1")));
}

TEST_F(EnvFilesTest, WhatWasAskedForMustBeThere) {
  Overrides overrides;
  overrides.command = {"x"};
  overrides.env_files = {"~/none"};
  const auto spec = BuildJobSpec(nullptr, overrides, around_);
  EXPECT_THAT(std::string(spec.status().message()), HasSubstr("--env-file: open /home/none"));
}

TEST_F(EnvFilesTest, ValuesOfTheSubmitter) {
  env_["A"] = "mine";
  files_["/run/.muster_env"] = "A\n";
  EXPECT_THAT(Environment(), ElementsAre(Pair("A", "mine")));
  files_["/run/.muster_env"] = "\nB\n";
  Overrides overrides;
  overrides.command = {"x"};
  EXPECT_THAT(std::string(BuildJobSpec(nullptr, overrides, around_).status().message()),
              HasSubstr("/run/.muster_env:2: B is not set here; write B=VALUE"));
}

TEST_F(EnvFilesTest, SecretsByTheirNamesAreKeptAsSecrets) {
  files_["/home/.deepspeed_env"] = "WANDB_API_KEY=abc123\nTOKENIZER_PATH=/t\n";
  env_["HF_TOKEN"] = "hf_x";
  Overrides overrides;
  overrides.env = {"HF_TOKEN"};
  EXPECT_THAT(Environment(nullptr, overrides),
              ElementsAre(Pair("HF_TOKEN", "secret hf_x"), Pair("TOKENIZER_PATH", "/t"),
                          Pair("WANDB_API_KEY", "secret abc123")));
}

TEST_F(EnvFilesTest, ASecretOfTheRecipeIsOverTheFiles) {
  files_["/home/.muster_env"] = "WANDB_API_KEY=old\n";
  files_["/key"] = "new\n";
  Recipe recipe;
  recipe.secrets = {{"WANDB_API_KEY", "/key", ""}};
  EXPECT_THAT(Environment(&recipe), ElementsAre(Pair("WANDB_API_KEY", "secret new")));
}

TEST(IsSecretName, KnowsTheUsualOnes) {
  for (const char* name : {"WANDB_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD",
                           "hf_token", "CLIENT_SECRET", "GOOGLE_CREDENTIALS"}) {
    EXPECT_TRUE(IsSecretName(name)) << name;
  }
  for (const char* name : {"TOKENIZERS_PARALLELISM", "KEY", "SORT_KEY", "MAX_TOKENS", "PATH",
                           "NCCL_DEBUG", "SECRET_PATH"}) {
    EXPECT_FALSE(IsSecretName(name)) << name;
  }
}

}  // namespace
}  // namespace muster::plan
