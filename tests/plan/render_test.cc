#include "controller/plan/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "controller/plan/text_table.h"
#include "plan_testing.h"

namespace muster::plan {
namespace {

using testing::HasSubstr;
using testing::Not;

v1::Plan SomePlan() {
  v1::JobSpec spec = Job("10.0.0.1 gpus=3,1 addr=10.1.0.1\n10.0.0.2 slots=2\n",
                         {"./train", "a b", "it's", R"({"x":1})", "\xFF"});
  *spec.mutable_parallel() = Sized(1, 2, 1, 1, 8);
  AddEnv(spec, "MODE", "fast lane");
  spec.add_secrets()->set_name("TOKEN");
  spec.mutable_secrets(0)->set_value("hunter2");
  return *MakePlan(spec);
}

// "command ..." and the lines that continue it.
std::string Command(const std::string& text) {
  const size_t from = text.find("command  ");
  return text.substr(from, text.find("\nhead", from) + 1 - from);
}

TEST(NumberRanges, FoldsRuns) {
  EXPECT_EQ(NumberRanges({}), "");
  EXPECT_EQ(NumberRanges({3}), "3");
  EXPECT_EQ(NumberRanges({0, 1}, ","), "0-1");
  EXPECT_EQ(NumberRanges({0, 1, 2, 5, 7, 8, 9}), "0-2, 5, 7-9");
}

TEST(RenderText, LongCommandsAreWrappedBesideTheirFlagsOrCut) {
  std::vector<std::string> words = {"./train"};
  for (int i = 10; i < 20; ++i) {
    words.push_back("--number-" + std::to_string(i));
    words.push_back(std::to_string(i));
  }
  const v1::Plan plan = *MakePlan(Job("a slots=1\n", words));
  EXPECT_EQ(
      Command(RenderText(plan)),
      "command  ./train --number-10 10 --number-11 11 --number-12 12 --number-13 13 "
      "--number-14 14 \\\n"
      "         --number-15 15 --number-16 16 --number-17 17 --number-18 18 --number-19 19\n");
  EXPECT_EQ(Command(RenderText(plan, RankRows::kBrief)),
            "command  ./train --number-10 10 --number-11 11 --number-12 12 --number-13 13 "
            "--number-14 14 ... (muster plan shows the rest)\n");
}

TEST(RenderText, ShowsThePlan) {
  EXPECT_EQ(
      RenderText(SomePlan()),
      "job      train\n"
      "sizes    4 GPUs / (TP 1 x PP 2 x CP 1) = DP 2; GBS = MBS 1 x 4 x DP 2 = 8\n"
      "bubble   (PP 2 - 1) / (VP 1 x 4 + PP 2 - 1) = 20.0 % of a step\n"
      "command  ./train 'a b' 'it'\\''s' '{\"x\":1}' $'\\xff'\n"
      "env      MODE='fast lane'\n"
      "head     10.1.0.1\n"
      "\n"
      "host      address   ranks\n"
      "10.0.0.1  10.1.0.1  0-1\n"
      "10.0.0.2  10.0.0.2  2-3\n"
      "\n"
      "host      rank  local  device  tp  cp  dp  pp\n"
      "10.0.0.1     0      0       3   0   0   0   0\n"
      "10.0.0.1     1      1       1   0   0   1   0\n"
      "10.0.0.2     2      0       -   0   0   0   1\n"
      "10.0.0.2     3      1       -   0   0   1   1\n"
      "\n"
      "group                       carries                                  f"
      "or example  groups  ranks  cross hosts\n"
      "dp, dp-cp, tp-dp, tp-dp-cp  batches, gradients, optimizer, FP8 amax  0"
      "-1               2      2            -\n"
      "pp, tp-pp, embedding        activations, norm, embeddings if tied    0"
      ", 2              2      2       2 of 2\n"
      "\n"
      "warning: pipeline bubble of 20 %: 4 micro-batches are few for PP 2; more micro-batches, "
      "virtual stages or a smaller PP shorten it\n");
}

TEST(RenderJson, IsReadable) {
  const auto json = nlohmann::json::parse(ToJson(SomePlan()));
  EXPECT_EQ(json["world"], 4);
  EXPECT_EQ(json["dp"], 2);
  EXPECT_EQ(json["global_batch"], 8);
  EXPECT_EQ(json["num_microbatches"], 4);
  EXPECT_EQ(json["head_addr"], "10.1.0.1");
  EXPECT_EQ(json["argv"][3], R"({"x":1})");
  EXPECT_EQ(json["env"]["MODE"], "fast lane");
  EXPECT_EQ(json["ranks"][0]["device"], 3);
  EXPECT_EQ(json["ranks"][2]["device"], nullptr);
  EXPECT_EQ(json["ranks"][3]["pp"], 1);
  EXPECT_EQ(json["ranks"][3]["host"], "10.0.0.2");
  EXPECT_EQ(json["nodes"][1]["first_rank"], 2);
  EXPECT_EQ(json["nodes"][0]["gpus"], (std::vector<int>{3, 1}));
}

TEST(Render, SecretsAreAbsent) {
  EXPECT_THAT(RenderText(SomePlan()) + ToJson(SomePlan()), Not(HasSubstr("hunter2")));
  EXPECT_THAT(RenderText(SomePlan()) + ToJson(SomePlan()), Not(HasSubstr("TOKEN")));
}

TEST(ShownQuoted, HasNothingThatATerminalObeys) {
  EXPECT_EQ(ShownQuoted("caf\xc3\xa9 x"), "'caf\xc3\xa9 x'");
  EXPECT_EQ(ShownQuoted("a\x1b[2Jb'\n"), "$'a\\x1b[2Jb\\'\\n'");
  EXPECT_EQ(ShownQuoted("\xff"), "$'\\xff'");
}

TEST(ShellQuoted, QuotesWhatAShellWouldChange) {
  EXPECT_EQ(ShellQuoted("--lr=1e-3,a/b"), "--lr=1e-3,a/b");
  EXPECT_EQ(ShellQuoted(""), "''");
  EXPECT_EQ(ShellQuoted("$HOME"), "'$HOME'");
}

}  // namespace
}  // namespace muster::plan
