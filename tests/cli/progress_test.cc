#include "controller/cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using namespace std::chrono_literals;

v1::ListNodesResponse Nodes(int up, int all) {
  v1::ListNodesResponse nodes;
  for (int i = 0; i < all; ++i) {
    v1::Node& node = *nodes.add_nodes();
    node.set_host("n" + std::to_string(i));
    node.add_job_ids("7");
    node.set_state(i < up ? v1::LINK_STATE_UP : v1::LINK_STATE_CONNECTING);
  }
  nodes.add_nodes()->set_host("of another job");
  return nodes;
}

v1::Job JobIn(v1::JobState state) {
  v1::Job job;
  job.set_id("7");
  job.set_state(state);
  return job;
}

TEST(DescribeProgress, CountsNodesThenRanks) {
  const Progress connecting = DescribeProgress(JobIn(v1::JOB_STATE_PREFLIGHT), Nodes(61, 64));
  EXPECT_EQ(connecting.text, "connecting 61/64 nodes");
  EXPECT_THAT(connecting.waiting, ElementsAre("n61", "n62", "n63"));
  EXPECT_EQ(DescribeProgress(JobIn(v1::JOB_STATE_PREFLIGHT), Nodes(64, 64)).text,
            "checking 64 nodes");

  v1::Job job = JobIn(v1::JOB_STATE_PREPARING);
  for (int rank = 0; rank < 4; ++rank) {
    v1::RankView& view = *job.add_ranks();
    view.set_host(rank < 2 ? "a" : "b");
    view.mutable_status()->set_state(rank == 0 ? v1::RANK_STATE_PREPARED : v1::RANK_STATE_ABSENT);
  }
  const Progress preparing = DescribeProgress(job, {});
  EXPECT_EQ(preparing.text, "preparing 1/4 ranks");
  EXPECT_THAT(preparing.waiting, ElementsAre("a", "b"));
  job.set_state(v1::JOB_STATE_STARTING);
  job.mutable_ranks(3)->mutable_status()->set_state(v1::RANK_STATE_EXITED);
  EXPECT_EQ(DescribeProgress(job, {}).text, "starting 1/4 ranks");
  EXPECT_TRUE(DescribeProgress(JobIn(v1::JOB_STATE_RUNNING), {}).over);
  EXPECT_TRUE(DescribeProgress(JobIn(v1::JOB_STATE_FAILED), {}).over);
  EXPECT_FALSE(DescribeProgress(JobIn(v1::JOB_STATE_QUEUED), {}).over);
}

TEST(ProgressDisplay, ATerminalSeesEachChangeAndTheSlowestAfterTwoSeconds) {
  ProgressDisplay display(true);
  const ProgressDisplay::TimePoint start{1h};
  const Progress progress = {"connecting 1/9 nodes", {"a", "b", "c", "d", "e"}};
  EXPECT_EQ(display.Next(progress, start), "connecting 1/9 nodes");
  EXPECT_EQ(display.Next(progress, start + 1s), std::nullopt);
  EXPECT_EQ(display.Next(progress, start + 2s),
            "connecting 1/9 nodes, waiting for a, b, c and 2 more");
  EXPECT_EQ(display.Next({"checking 9 nodes", {}}, start + 3s), "checking 9 nodes");
  EXPECT_EQ(display.Next({}, start + 4s), "");  // wiped away
}

TEST(ProgressDisplay, TroubleIsShownAtOnceAndOnce) {
  v1::ListNodesResponse nodes = Nodes(1, 3);
  nodes.mutable_nodes(2)->set_error("n2:7465: connection refused");
  const Progress progress = DescribeProgress(JobIn(v1::JOB_STATE_PREFLIGHT), nodes);
  const ProgressDisplay::TimePoint start{1h};
  for (const bool live : {true, false}) {
    ProgressDisplay display(live);
    EXPECT_EQ(display.Next(progress, start), "connecting 1/3 nodes: n2:7465: connection refused");
    EXPECT_EQ(display.Next(progress, start + 1s), std::nullopt);
  }
}

TEST(ProgressDisplay, ElsewhereOnlyWhatIsSlowMakesALineEverMoreRarely) {
  ProgressDisplay display(false);
  const ProgressDisplay::TimePoint start{1h};
  std::vector<int> seconds;
  for (int i = 0; i < 60; ++i) {
    const Progress progress = {"connecting " + std::to_string(i) + "/99 nodes", {"a"}};
    if (display.Next(progress, start + std::chrono::seconds(i))) seconds.push_back(i);
  }
  EXPECT_THAT(seconds, ElementsAre(2, 6, 14, 30));
  EXPECT_EQ(display.Next({}, start + 100s), std::nullopt);
}

}  // namespace
}  // namespace muster::cli
