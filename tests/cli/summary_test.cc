#include "controller/cli/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "controller/cli/job_json.h"

namespace muster::cli {
namespace {

using testing::HasSubstr;

v1::Job KilledJob() {
  v1::Job job;
  job.set_id("3");
  job.set_state(v1::JOB_STATE_FAILED);
  job.set_output_dir("/data/output/x");
  job.set_started_ns(1'000'000'000);
  job.set_ended_ns(13'000'000'000);
  v1::Plan& plan = *job.mutable_plan();
  plan.set_name("tiny");
  plan.set_world(4);
  for (const char* host : {"127.0.0.2", "127.0.0.30"}) {
    v1::NodePlan& node = *plan.add_nodes();
    node.mutable_host()->set_host(host);
    node.set_num_ranks(2);
    v1::NodeEnd& end = *job.add_ends();
    end.set_host(host);
    end.set_clean(true);
    end.mutable_report()->set_verified(true);
  }
  v1::Outcome& outcome = *job.mutable_outcome();
  outcome.set_cause(v1::CAUSE_RANK_FAILED);
  outcome.set_code(137);
  outcome.set_rank(2);
  outcome.set_host("127.0.0.30");
  outcome.set_signal(9);
  outcome.set_message("rank 2 on 127.0.0.30 was killed by SIGKILL (9)");
  return job;
}

std::string Joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

TEST(WhyLines, SayWhatHappenedHowNodesEndedAndWhereTheLogsAre) {
  EXPECT_EQ(Joined(WhyLines(why::Explain(KilledJob(), {}, {}), Style())),
            "job 3 (tiny) failed after 12 s, exit code 137\n"
            "  cause   rank 2 on 127.0.0.30 was killed by SIGKILL (9)\n"
            "  nodes   127.0.0.2   clean  2 ranks ended, 0 left\n"
            "          127.0.0.30  clean  2 ranks ended, 0 left\n"
            "  logs    /data/output/x\n");
}

TEST(NodeLines, RanksThatNeverRanDidNotEnd) {
  v1::Job job = KilledJob();
  for (auto& rank : *job.mutable_ranks()) rank.mutable_status()->set_state(v1::RANK_STATE_ABSENT);
  for (uint32_t i = 0; i < 2; ++i) {
    v1::RankView& rank = *job.add_ranks();
    rank.set_host("127.0.0.2");
    rank.mutable_status()->set_state(i == 0 ? v1::RANK_STATE_PREPARED : v1::RANK_STATE_KILLED);
  }
  EXPECT_EQ(NodeLines(job, Style())[0], "127.0.0.2   clean  1 rank ended, 1 not started, 0 left");
  job.mutable_ranks(job.ranks_size() - 1)->mutable_status()->set_state(v1::RANK_STATE_ABSENT);
  EXPECT_EQ(NodeLines(job, Style())[0], "127.0.0.2   clean  2 ranks not started, 0 left");
}

TEST(WhyLines, SayOnceThatAllIsWell) {
  v1::Job job = KilledJob();
  job.set_state(v1::JOB_STATE_SUCCEEDED);
  job.clear_outcome();
  job.mutable_outcome()->set_cause(v1::CAUSE_OK);
  job.mutable_outcome()->set_message("all ranks exited with 0");
  job.clear_ranks();
  v1::RankView& rank = *job.add_ranks();
  rank.set_host("127.0.0.2");
  rank.mutable_status()->set_state(v1::RANK_STATE_EXITED);
  EXPECT_EQ(Joined(WhyLines(why::Explain(job, {}, {}), Style())),
            "job 3 (tiny) succeeded after 12 s\n"
            "  ranks   rank 0: exited with code 0\n"
            "  nodes   127.0.0.2   clean  2 ranks ended, 0 left\n"
            "          127.0.0.30  clean  2 ranks ended, 0 left\n"
            "  logs    /data/output/x\n");
}

TEST(NodeLines, NameSurvivorsAndWhatWasSwept) {
  v1::Job job = KilledJob();
  v1::NodeEnd& end = *job.mutable_ends(0);
  end.set_clean(false);
  v1::Survivor& survivor = *end.mutable_report()->add_survivors();
  survivor.set_pid(812);
  survivor.set_command("python");
  survivor.set_state("D");
  survivor.set_wait_channel("nfs_wait");
  survivor.set_rank(1);
  v1::Survivor& swept = *end.mutable_report()->add_swept();
  swept.set_pid(900);
  swept.set_command("loader");
  EXPECT_EQ(NodeLines(job, Style())[0],
            "127.0.0.2   LEFTOVERS  2 ranks ended, 1 left; still there: pid 812 python of rank 1, "
            "state D in nfs_wait; outlived its rank and was ended: pid 900 loader");
  EXPECT_FALSE(AllClean(job));
  end.mutable_report()->set_verified(false);
  EXPECT_THAT(NodeLines(job, Style())[0], HasSubstr("UNVERIFIED"));
  // Nobody has looked: there is no number to give.
  end.mutable_report()->clear_survivors();
  end.mutable_report()->clear_swept();
  EXPECT_EQ(NodeLines(job, Style())[0],
            "127.0.0.2   UNVERIFIED  2 ranks, nobody could look what is left");
}

TEST(NodeLines, SayHowManyNeededSigkill) {
  v1::Job job = KilledJob();
  v1::RankView& rank = *job.add_ranks();
  rank.set_host("127.0.0.2");
  rank.mutable_status()->mutable_exit()->set_escalated(true);
  EXPECT_EQ(NodeLines(job, Style())[0],
            "127.0.0.2   clean  2 ranks ended, 0 left; 1 rank needed SIGKILL");
}

TEST(JobJson, HasTheKeysOfTheContract) {
  const auto json = nlohmann::json::parse(JobJson(KilledJob()));
  EXPECT_EQ(json["job"], "3");
  EXPECT_EQ(json["state"], "failed");
  EXPECT_EQ(json["cause"], "rank_failed");
  EXPECT_EQ(json["code"], 137);
  EXPECT_EQ(json["rank"], 2);
  EXPECT_EQ(json["host"], "127.0.0.30");
  EXPECT_EQ(json["signal"], 9);
  EXPECT_EQ(json["message"], "rank 2 on 127.0.0.30 was killed by SIGKILL (9)");
  EXPECT_EQ(json["output_dir"], "/data/output/x");
  EXPECT_EQ(json["nodes"][0]["clean"], true);
}

TEST(JobJson, ARunningJobHasNoCauseYet) {
  v1::Job job = KilledJob();
  job.set_state(v1::JOB_STATE_RUNNING);
  job.clear_outcome();
  const auto json = nlohmann::json::parse(JobJson(job));
  EXPECT_TRUE(json["cause"].is_null());
  EXPECT_TRUE(json["code"].is_null());
}

TEST(JobJson, SurvivesBytesThatAreNotUtf8) {
  v1::Job job = KilledJob();
  job.mutable_outcome()->set_message("bad\xff");
  EXPECT_EQ(nlohmann::json::parse(JobJson(job))["message"], "bad\xEF\xBF\xBD");
}

}  // namespace
}  // namespace muster::cli
