#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/engine/outcome.h"

namespace muster::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kMs = 1'000'000;

// Two nodes with two ranks each, on two machines with exact clocks.
JobRun Job() {
  JobRun job;
  job.plan.emplace();
  for (uint32_t n = 0; n < 2; ++n) {
    NodeRun& node = job.nodes.emplace_back();
    node.host.set_host(n == 0 ? "n1" : "n2");
    node.boot_id = n == 0 ? "a" : "b";
    node.clock = preflight::ClockOffset{0, 0};
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t rank = 2 * n + i;
      auto& planned = *job.plan->add_ranks();
      planned.set_rank(rank);
      planned.set_node(n);
      auto& status = job.ranks.emplace_back();
      status.set_rank(rank);
      status.set_state(v1::RANK_STATE_RUNNING);
    }
  }
  return job;
}

void Fail(JobRun& job, uint32_t rank, int64_t ended_ns, uint64_t wait_order, int32_t code = 1,
          int32_t signal = 0) {
  auto& status = job.ranks[rank];
  status.set_state(v1::RANK_STATE_EXITED);
  status.mutable_exit()->set_code(signal != 0 ? 128 + signal : code);
  status.mutable_exit()->set_signal(signal);
  status.mutable_exit()->set_ended_ns(ended_ns);
  status.mutable_exit()->set_wait_order(wait_order);
}

TEST(FindCulprit, NobodyFailed) {
  JobRun job = Job();
  EXPECT_FALSE(FindCulprit(job));
  Fail(job, 1, 5, 1, 0);
  EXPECT_FALSE(FindCulprit(job)) << "an exit with 0 is no failure";
  job.ranks[2].set_state(v1::RANK_STATE_KILLED);
  job.ranks[2].mutable_exit()->set_code(143);
  EXPECT_FALSE(FindCulprit(job)) << "what our stop killed is no failure";
}

TEST(FindCulprit, WaitOrderDecidesOnOneNode) {
  JobRun job = Job();
  Fail(job, 0, 100, 2);
  Fail(job, 1, 100, 1);
  const auto culprit = FindCulprit(job);
  ASSERT_TRUE(culprit);
  EXPECT_EQ(culprit->rank, 1u);
  EXPECT_THAT(culprit->undecided, IsEmpty());
}

TEST(FindCulprit, ClocksArePutRightBetweenNodes) {
  JobRun job = Job();
  job.nodes[1].clock = preflight::ClockOffset{-500 * kMs, 2 * kMs};  // n2 is half a second behind
  Fail(job, 0, 1000 * kMs, 1);
  Fail(job, 3, 600 * kMs, 1);  // 1100 ms on the controller's clock
  EXPECT_EQ(FindCulprit(job)->rank, 0u);
  EXPECT_THAT(FindCulprit(job)->undecided, IsEmpty());
  Fail(job, 3, 400 * kMs, 1);  // 900 ms
  EXPECT_EQ(FindCulprit(job)->rank, 3u);
}

TEST(FindCulprit, WithinTheUncertaintyItIsUndecidable) {
  JobRun job = Job();
  job.nodes[0].clock = preflight::ClockOffset{0, 3 * kMs};
  job.nodes[1].clock = preflight::ClockOffset{0, 3 * kMs};
  Fail(job, 1, 1005 * kMs, 1);
  Fail(job, 2, 1000 * kMs, 1);
  const auto culprit = FindCulprit(job);
  ASSERT_TRUE(culprit);
  EXPECT_EQ(culprit->rank, 1u);
  EXPECT_THAT(culprit->undecided, ElementsAre(2));
  EXPECT_THAT(RankFailedOutcome(job, *culprit).message(),
              HasSubstr("undecidable between ranks 1 and 2"));
}

TEST(FindCulprit, NodesOfOneMachineShareTheirClock) {
  JobRun job = Job();
  job.nodes[1].boot_id = "a";
  job.nodes[0].clock = preflight::ClockOffset{0, 30 * kMs};
  job.nodes[1].clock = preflight::ClockOffset{7 * kMs, 30 * kMs};
  Fail(job, 1, 1001, 1);
  Fail(job, 2, 1000, 1);
  EXPECT_EQ(FindCulprit(job)->rank, 2u);
  EXPECT_THAT(FindCulprit(job)->undecided, IsEmpty());
}

TEST(FindCulprit, WithoutAClockOnlyTheNodeItselfIsInOrder) {
  JobRun job = Job();
  job.nodes[1].clock.reset();
  Fail(job, 0, 1, 2);
  Fail(job, 1, 1, 1);
  Fail(job, 3, 900, 1);
  EXPECT_EQ(FindCulprit(job)->rank, 1u);
  EXPECT_THAT(FindCulprit(job)->undecided, ElementsAre(3));
}

TEST(RankFailedOutcome, NamesRankHostAndSignal) {
  JobRun job = Job();
  Fail(job, 2, 1, 1, 0, 9);
  const auto outcome = RankFailedOutcome(job, {2, {}});
  EXPECT_EQ(outcome.message(), "rank 2 on n2 was killed by SIGKILL (9); Muster did not send it");
  EXPECT_EQ(outcome.code(), 137);
  EXPECT_EQ(outcome.signal(), 9);
  EXPECT_EQ(outcome.rank(), 2u);
  EXPECT_EQ(outcome.host(), "n2");
  EXPECT_EQ(outcome.cause(), v1::CAUSE_RANK_FAILED);
}

TEST(RankFailedOutcome, HasTheErrorRecordsText) {
  JobRun job = Job();
  Fail(job, 0, 1, 1, 3);
  job.ranks[0].mutable_exit()->set_error_record(
      R"({"message": {"message": "ValueError: x\ny", "extraInfo": {"py_callstack": "...", "timestamp": "17"}}})");
  EXPECT_EQ(RankFailedOutcome(job, {0, {}}).message(),
            "rank 0 on n1 exited with code 3\nValueError: x y");
}

TEST(ErrorText, ReadsBothFormsAndNothingElse) {
  EXPECT_EQ(ErrorText(R"({"message": "loss is NaN", "timestamp": 17})"), "loss is NaN");
  EXPECT_EQ(ErrorText(R"({"message": {"extraInfo": {}}})"), "");
  EXPECT_EQ(ErrorText("[]"), "");
  EXPECT_EQ(ErrorText("{\"message\": \"cut"), "");
  EXPECT_EQ(ErrorText(""), "");
  EXPECT_EQ(ErrorText("{\"message\": \"" + std::string(2000, 'x') + "\"}").size(), 503u);
}

TEST(CodeOf, AsDocumented) {
  EXPECT_EQ(CodeOf(v1::CAUSE_OK), 0);
  EXPECT_EQ(CodeOf(v1::CAUSE_INVALID), 2);
  EXPECT_EQ(CodeOf(v1::CAUSE_PREFLIGHT_FAILED), 120);
  EXPECT_EQ(CodeOf(v1::CAUSE_LAUNCH_FAILED), 121);
  EXPECT_EQ(CodeOf(v1::CAUSE_NODE_LOST), 122);
  EXPECT_EQ(CodeOf(v1::CAUSE_HANG), 123);
  EXPECT_EQ(CodeOf(v1::CAUSE_LEFTOVERS), 124);
  EXPECT_EQ(CodeOf(v1::CAUSE_INTERNAL), 125);
  EXPECT_EQ(CodeOf(v1::CAUSE_STOPPED_BY_USER), 130);
}

}  // namespace
}  // namespace muster::engine
