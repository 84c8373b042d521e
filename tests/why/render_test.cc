#include "controller/why/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster::why {
namespace {

using testing::HasSubstr;
using testing::Not;

Why Sample() {
  Why why;
  why.job = "3";
  why.name = "tiny";
  why.state = v1::JOB_STATE_FAILED;
  why.cause = v1::CAUSE_RANK_FAILED;
  why.code = 1;
  why.duration_ns = 12'000'000'000;
  why.message = "rank 2 on n2 exited with code 1";
  CauseRank cause;
  cause.rank = 2;
  cause.host = "n2";
  cause.pid = 812;
  cause.end = "exited with code 1";
  cause.error = "OSError: [Errno 98] Address already in use";
  cause.error_source = "its last lines";
  cause.lines = {{false, "step 1"}, {true, cause.error}};
  cause.ports = {"n2:29500 is in use by pid 7 (python)"};
  why.causes = {cause};
  RankGroup later;
  later.ranks = {5};
  later.doing = "exited with code 71";
  later.after_s = {0.5, 0.5};
  why.followed = {later};
  RankGroup ended;
  ended.ranks = {0, 1, 3, 4};
  ended.doing = "running, ended by us (SIGTERM)";
  ended.iterations = {17, 18};
  ended.last_line = "step 17";
  why.others = {ended};
  why.kernel_notes = {"nothing in the kernel's log of n2 at that time"};
  Hint hint;
  hint.cause = "a port is taken";
  hint.advice = "end its holder";
  hint.action = RuleAction::kRetry;
  hint.rule = "address-in-use";
  hint.place = "deploy/rules/host.toml:9";
  why.hints = {hint};
  why.nodes = {{"n2", true, "clean", "2 ranks ended, 0 left"}};
  why.output_dir = "/data/out";
  why.remarks = {"a.toml:1:1: wrong"};
  return why;
}

TEST(Text, IsOneScreen) {
  EXPECT_EQ(
      Text(Sample()),
      "job 3 (tiny) failed after 12 s, exit code 1\n"
      "  cause   rank 2 on n2 (pid 812) exited with code 1\n"
      "  error   OSError: [Errno 98] Address already in use\n"
      "          (from its last lines)\n"
      "  port    n2:29500 is in use by pid 7 (python)\n"
      "  lines   out | step 1\n"
      "          err | OSError: [Errno 98] Address already in use\n"
      "  kernel  nothing in the kernel's log of n2 at that time\n"
      "  hint    a port is taken\n"
      "          do: end its holder\n"
      "          then: run it again\n"
      "          (rule address-in-use, deploy/rules/host.toml:9)\n"
      "  then    rank 5: exited with code 71, 0.50 s later\n"
      "  others  4 ranks (0-1,3-4): running, ended by us (SIGTERM); iterations 17 to 18; last "
      "line: step 17\n"
      "  nodes   n2  clean  2 ranks ended, 0 left\n"
      "  logs    /data/out\n"
      "          muster logs 3 --rank 2\n"
      "  note    a rule does not count: a.toml:1:1: wrong\n");
}

TEST(Text, ShowsTheFixOfAFindingOnItsOwnLine) {
  Why why;
  why.job = "4";
  why.state = v1::JOB_STATE_FAILED;
  why.code = 120;
  why.message = "program: n1, n2: no train; fix: install train\nclock: n1: slow";
  EXPECT_EQ(Text(why),
            "job 4 failed, exit code 120\n"
            "  cause   program: n1, n2: no train\n"
            "            fix: install train\n"
            "          clock: n1: slow\n");
}

TEST(Text, ManyCleanNodesShareALineAndOthersStand) {
  Why why;
  why.job = "5";
  why.state = v1::JOB_STATE_SUCCEEDED;
  for (int i = 1; i <= 9; ++i)
    why.nodes.push_back({"n" + std::to_string(i), true, "clean", "8 ranks ended, 0 left"});
  why.nodes.push_back({"n10", false, "LEFTOVERS", "pid 7"});
  EXPECT_THAT(Text(why), HasSubstr("  nodes   9 nodes (n1 ... n9)  clean  8 ranks ended, 0 left on "
                                   "each\n          n10  LEFTOVERS  pid 7\n"));
  why.nodes.erase(why.nodes.begin());
  EXPECT_THAT(Text(why), HasSubstr("  nodes   n2   clean  8 ranks ended, 0 left\n"));
}

TEST(Text, SaysWhatIsUndecidable) {
  Why why = Sample();
  why.causes.push_back(why.causes[0]);
  why.causes[1].rank = 7;
  EXPECT_THAT(Text(why), HasSubstr("undecidable between ranks 2 and 7 (within the uncertainty"));
}

TEST(Text, OfARunningJobTellsWhatItsRanksDo) {
  Why why = Sample();
  why.state = v1::JOB_STATE_RUNNING;
  why.causes.clear();
  why.hints.clear();
  EXPECT_THAT(Text(why), HasSubstr("job 3 (tiny) running\n"));
  EXPECT_THAT(Text(why), HasSubstr("  ranks   4 ranks (0-1,3-4): running"));
  EXPECT_THAT(Text(why), Not(HasSubstr("cause")));
}

TEST(Json, HasAllOfIt) {
  const auto json = nlohmann::json::parse(Json(Sample()));
  EXPECT_EQ(json["cause"], "rank_failed");
  EXPECT_EQ(json["code"], 1);
  EXPECT_EQ(json["undecidable"], false);
  EXPECT_EQ(json["causes"][0]["rank"], 2);
  EXPECT_EQ(json["causes"][0]["lines"][1]["stream"], "stderr");
  EXPECT_EQ(json["others"][0]["iterations"][1], 18);
  EXPECT_EQ(json["followed"][0]["after_s"][0], 0.5);
  EXPECT_EQ(json["hints"][0]["action"], "retry");
  EXPECT_EQ(json["nodes"][0]["verdict"], "clean");
  Why running = Sample();
  running.state = v1::JOB_STATE_RUNNING;
  EXPECT_TRUE(nlohmann::json::parse(Json(running))["code"].is_null());
}

}  // namespace
}  // namespace muster::why
