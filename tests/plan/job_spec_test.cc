#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "controller/plan/recipe.h"
#include "controller/plan/secrets.h"

namespace muster::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class JobSpecTest : public testing::Test {
 protected:
  JobSpecTest() {
    around_.bin_dir = "/opt/muster/bin";
    around_.working_dir = "/home/ann/run";
    around_.get_env = [this](const std::string& name) -> std::optional<std::string> {
      const auto it = env_.find(name);
      return it == env_.end() ? std::nullopt : std::optional<std::string>(it->second);
    };
    around_.read_file = [this](const std::string& path) -> absl::StatusOr<std::string> {
      const auto it = files_.find(path);
      if (it == files_.end()) return absl::NotFoundError("open " + path + ": No such file");
      return it->second;
    };
    around_.is_executable = [](const std::string& path) {
      return path == "/opt/muster/bin/muster-train";
    };
  }

  // Builds from a recipe text at /recipes/r.toml.
  absl::StatusOr<v1::JobSpec> Load(const std::string& text, const Overrides& overrides = {}) {
    files_["/recipes/r.toml"] = text;
    return LoadRecipe("/recipes/r.toml", overrides, around_);
  }

  Surroundings around_;
  std::map<std::string, std::string> env_ = {{"HOME", "/home/ann"}};
  std::map<std::string, std::string> files_;
};

constexpr char kRecipe[] = R"(
[job]
name = "tiny"
command = ["muster-train"]
grace = 5
[parallel]
tp = 2
micro_batch = 1
num_microbatches = 8
[flags]
bf16 = true
[env]
A = "1"
[checks]
skip = ["clock"]
)";

TEST_F(JobSpecTest, FromARecipe) {
  const auto spec = Load(kRecipe);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->name(), "tiny");
  EXPECT_THAT(spec->command(), ElementsAre("/opt/muster/bin/muster-train"));
  EXPECT_EQ(spec->grace().seconds(), 5);
  EXPECT_EQ(spec->parallel().tp(), 2U);
  EXPECT_EQ(spec->working_dir(), "/home/ann/run");
  EXPECT_EQ(spec->recipe(), kRecipe);
  EXPECT_THAT(spec->skip_checks(), ElementsAre("clock"));
  EXPECT_EQ(spec->flags(0).name(), "bf16");
}

TEST_F(JobSpecTest, FromTheCommandLineAlone) {
  Overrides o;
  o.command = {"python", "train.py"};
  o.tp = 1;
  o.pp = 2;
  o.nnodes = 2;
  o.nproc_per_node = 4;
  const auto spec = BuildJobSpec(nullptr, o, around_);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_THAT(spec->command(), ElementsAre("python", "train.py"));
  EXPECT_EQ(spec->parallel().pp(), 2U);
  EXPECT_EQ(spec->nnodes(), 2U);
  EXPECT_EQ(spec->nproc_per_node(), 4U);
  EXPECT_FALSE(spec->has_grace());
  EXPECT_THAT(BuildJobSpec(nullptr, {}, around_).status().message(), HasSubstr("no command"));
}

TEST_F(JobSpecTest, TheCommandLineWins) {
  Overrides o;
  o.name = "other";
  o.tp = 1;
  o.global_batch = 16;  // replaces num_microbatches: the two exclude each other
  o.grace = "2m";
  o.env = {"A=2", "B=x=y", "HOME"};
  o.working_dir = "sub";
  const auto spec = Load(kRecipe, o);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->name(), "other");
  EXPECT_EQ(spec->parallel().tp(), 1U);
  EXPECT_EQ(spec->parallel().global_batch(), 16U);
  EXPECT_EQ(spec->parallel().num_microbatches(), 0U);
  EXPECT_EQ(spec->parallel().micro_batch(), 1U);
  EXPECT_EQ(spec->grace().seconds(), 120);
  ASSERT_EQ(spec->env_size(), 3);
  EXPECT_EQ(spec->env(0).value(), "2");
  EXPECT_EQ(spec->env(1).value(), "x=y");
  EXPECT_EQ(spec->env(2).value(), "/home/ann");
  EXPECT_EQ(spec->working_dir(), "/home/ann/run/sub");
}

TEST_F(JobSpecTest, BadOverrides) {
  Overrides zero;
  zero.tp = 0;
  EXPECT_THAT(Load(kRecipe, zero).status().message(), HasSubstr("--tp must be at least 1"));
  Overrides both;
  both.global_batch = 8;
  both.num_microbatches = 8;
  EXPECT_THAT(Load(kRecipe, both).status().message(), HasSubstr("give one"));
  Overrides unset;
  unset.env = {"NOT_SET"};
  EXPECT_THAT(Load(kRecipe, unset).status().message(), HasSubstr("--env NOT_SET=VALUE"));
  Overrides nameless;
  nameless.env = {"=x"};
  EXPECT_FALSE(Load(kRecipe, nameless).ok());
  Overrides grace;
  grace.grace = "soon";
  EXPECT_THAT(Load(kRecipe, grace).status().message(), HasSubstr("--grace: bad grace 'soon'"));
}

TEST_F(JobSpecTest, OnlyABareTrainerIsLookedUp) {
  Overrides o;
  o.command = {"./muster-train"};
  EXPECT_EQ(BuildJobSpec(nullptr, o, around_)->command(0), "./muster-train");
  o.command = {"muster-train"};
  around_.bin_dir = "/elsewhere";
  EXPECT_EQ(BuildJobSpec(nullptr, o, around_)->command(0), "muster-train");
}

TEST_F(JobSpecTest, SecretsComeFromFilesAndTheEnvironmentAndAreMasked) {
  env_["HF_TOKEN"] = "hf_abcdef";
  files_["/home/ann/.wandb"] = "hunter2000\n";
  files_["/recipes/key.txt"] = "relative-key\r\n";
  const auto spec = Load(R"(
[job]
command = ["python"]  # not here: hunter2000
[secrets]
WANDB = { file = "~/.wandb" }
HF = { env = "HF_TOKEN" }
KEY = { file = "key.txt" }
)");
  ASSERT_TRUE(spec.ok()) << spec.status();
  ASSERT_EQ(spec->secrets_size(), 3);
  EXPECT_EQ(spec->secrets(0).value(), "hunter2000");
  EXPECT_EQ(spec->secrets(1).value(), "hf_abcdef");
  EXPECT_EQ(spec->secrets(2).value(), "relative-key");
  EXPECT_THAT(spec->recipe(), Not(HasSubstr("hunter2000")));
  EXPECT_THAT(spec->recipe(), HasSubstr("# not here: ****"));
  EXPECT_EQ(spec->env_size(), 0);
}

TEST_F(JobSpecTest, BadSecretsNameTheSecretAndNoValue) {
  const auto missing = Load("[job]\ncommand=[\"x\"]\n[secrets]\nA = { file = \"/none\" }\n");
  EXPECT_THAT(missing.status().message(), HasSubstr("/recipes/r.toml: secret A: open /none"));
  const auto unset = Load("[job]\ncommand=[\"x\"]\n[secrets]\nA = { env = \"NOPE\" }\n");
  EXPECT_THAT(unset.status().message(), HasSubstr("secret A: NOPE is not set here"));
  files_["/empty"] = "\n";
  const auto empty = Load("[job]\ncommand=[\"x\"]\n[secrets]\nA = { file = \"/empty\" }\n");
  EXPECT_THAT(empty.status().message(), HasSubstr("its value is empty"));
}

TEST_F(JobSpecTest, SecretsMayNotStandWhereOthersCanReadThem) {
  env_["TOKEN"] = "hunter2000";
  const std::string secret = "[secrets]\nT = { env = \"TOKEN\" }\n";
  for (const auto& [place, text] : std::map<std::string, std::string>{
           {"word 2 of the command", "[job]\ncommand = [\"x\", \"--t=hunter2000\"]\n"},
           {"flag key", "[job]\ncommand = [\"muster-train\"]\n[flags]\nkey = \"hunter2000\"\n"},
           {"environment variable A", "[job]\ncommand = [\"x\"]\n[env]\nA = \"hunter2000\"\n"}}) {
    const auto spec = Load(text + secret);
    EXPECT_THAT(spec.status().message(), HasSubstr("secret T also stands in " + place));
    EXPECT_THAT(spec.status().message(), Not(HasSubstr("hunter2000")));
  }
}

TEST_F(JobSpecTest, UnreadableRecipe) {
  EXPECT_THAT(LoadRecipe("/none.toml", {}, around_).status().message(), HasSubstr("/none.toml"));
}

TEST(MaskSecrets, LongestFirstAndNeverForEver) {
  v1::EnvVar a;
  a.set_value("abcd");
  v1::EnvVar b;
  b.set_value("abcdefgh");
  v1::EnvVar stars;
  stars.set_value("****");
  v1::EnvVar tiny;
  tiny.set_value("x");
  EXPECT_EQ(MaskSecrets("abcdefgh abcd x", {a, b, stars, tiny}), "**** **** x");
}

TEST(Surroundings, ReadsRealFiles) {
  const Surroundings real = Surroundings::Real("/bin");
  const auto path = std::filesystem::path(testing::TempDir()) / "muster_surroundings.txt";
  std::ofstream(path) << "hello\n";
  EXPECT_EQ(*real.read_file(path), "hello\n");
  std::filesystem::remove(path);
  EXPECT_THAT(real.read_file(path).status().message(), HasSubstr("No such file"));
  EXPECT_TRUE(real.is_executable("/bin/sh"));
  EXPECT_FALSE(real.is_executable("/nonexistent"));
  EXPECT_TRUE(real.working_dir.starts_with("/"));
}

}  // namespace
}  // namespace muster::plan
