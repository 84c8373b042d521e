#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/engine/transitions.h"
#include "tests/engine/simulation.h"

// One story a test; the property test has the rest.

namespace muster::testing {
namespace {

using engine::TimerKind;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class Flow : public ::testing::Test {
 protected:
  ~Flow() override { EXPECT_THAT(sim_.violations(), IsEmpty()); }

  // Two ranks on each of two nodes, running.
  uint64_t RunningJob() {
    const uint64_t job = sim_.Submit({"n1", "n2"}, 2);
    sim_.Settle();
    EXPECT_EQ(sim_.job(job).state, v1::JOB_STATE_RUNNING);
    return job;
  }
  const v1::Outcome& Outcome(uint64_t job) { return *sim_.job(job).outcome; }
  void ExpectEnd(uint64_t job, v1::JobState state, v1::Cause cause, int32_t code) {
    ASSERT_EQ(engine::Name(sim_.job(job).state), engine::Name(state));
    EXPECT_EQ(v1::Cause_Name(Outcome(job).cause()), v1::Cause_Name(cause));
    EXPECT_EQ(Outcome(job).code(), code);
  }

  Simulation sim_{{"n1", "n2", "n3"}};
};

TEST_F(Flow, AllRanksExitWithZero) {
  const uint64_t job = RunningJob();
  EXPECT_EQ(sim_.job(job).master_port, 29500u);
  for (uint32_t rank = 0; rank < 4; ++rank) sim_.ExitRank(job, rank, 0);
  sim_.Settle();
  ExpectEnd(job, v1::JOB_STATE_SUCCEEDED, v1::CAUSE_OK, 0);
  EXPECT_THAT(sim_.node("n1").accepted(), ElementsAre("PREPARED", "RUNNING", "FORGOTTEN"));
  EXPECT_TRUE(sim_.job(job).forgotten);
  EXPECT_TRUE(sim_.HasEvent(job, "rank 0 on n1 exited with code 0; 3 ranks still run"));
}

TEST_F(Flow, RanksGetTheirEnvironment) {
  RunningJob();
  const auto& spec = sim_.node("n2").specs().at(3);
  std::map<std::string, std::string> env;
  for (const auto& variable : spec.env()) env[variable.name()] = variable.value();
  EXPECT_EQ(env["RANK"], "3");
  EXPECT_EQ(env["MASTER_PORT"], "29500");
  EXPECT_EQ(env["MUSTER_JOB_ID"], "1");
  EXPECT_EQ(env["MUSTER_CONTROLLER_ID"], "0123456789abcdef");
  EXPECT_EQ(env["TORCHELASTIC_RUN_ID"], "01234567-1-0");
}

TEST_F(Flow, AFailedRankStopsAllAtOnceAndGivesItsCode) {
  const uint64_t job = RunningJob();
  sim_.ExitRank(job, 3, 0, 9);
  sim_.Settle();
  ExpectEnd(job, v1::JOB_STATE_FAILED, v1::CAUSE_RANK_FAILED, 137);
  EXPECT_EQ(Outcome(job).message(),
            "rank 3 on n2 was killed by SIGKILL (9); Muster did not send it");
  EXPECT_EQ(sim_.node("n1").last_grace_seconds(), 2);
  EXPECT_THAT(sim_.node("n1").Running(), IsEmpty());
  EXPECT_TRUE(sim_.HasEvent(job, "rank 0 on n1 ended by the stop"));
}

TEST_F(Flow, TheFirstToFailIsFoundEvenIfAnotherIsHeardFirst) {
  const uint64_t job = RunningJob();
  const int64_t early = sim_.now_ns;
  sim_.now_ns += 500'000'000;
  sim_.ExitRank(job, 0, 1);  // a collateral failure, reported at once
  sim_.now_ns = early;
  sim_.ExitRank(job, 2, 7);  // the cause, on a slower link
  sim_.now_ns += 600'000'000;
  sim_.Settle();
  ExpectEnd(job, v1::JOB_STATE_FAILED, v1::CAUSE_RANK_FAILED, 7);
  EXPECT_EQ(Outcome(job).rank(), 2u);
}

TEST_F(Flow, PrepareFailsOnOneNodeSoNothingStartsAnywhere) {
  sim_.node("n2").faults.prepare_error = "mkdir /var/tmp/x: No space left on device";
  const uint64_t job = sim_.Submit({"n1", "n2"});
  sim_.Settle();
  ExpectEnd(job, v1::JOB_STATE_FAILED, v1::CAUSE_LAUNCH_FAILED, 121);
  EXPECT_THAT(Outcome(job).message(),
              HasSubstr("n2 could not prepare its ranks: rank 1: mkdir /var/tmp/x"));
  EXPECT_THAT(sim_.node("n1").accepted(), ElementsAre("PREPARED", "STOPPED", "FORGOTTEN"));
}

TEST_F(Flow, AProgramThatDoesNotExecuteIsALaunchFailure) {
  sim_.node("n2").faults.start_error = "exec /x/train: Permission denied";
  const uint64_t job = sim_.Submit({"n1", "n2"});
  sim_.Settle();
  ExpectEnd(job, v1::JOB_STATE_FAILED, v1::CAUSE_LAUNCH_FAILED, 121);
  EXPECT_THAT(Outcome(job).message(), HasSubstr("exec /x/train: Permission denied"));
  EXPECT_THAT(sim_.node("n1").Running(), IsEmpty());
}

TEST_F(Flow, PrepareTimesOut) {
  const uint64_t job = sim_.Submit({"n1", "n2"});
  while (sim_.job(job).state != v1::JOB_STATE_PREPARING) sim_.Moves(false).front()();
  sim_.FireTimer(TimerKind::kPrepare);
  sim_.Settle();
  ExpectEnd(job, v1::JOB_STATE_FAILED, v1::CAUSE_LAUNCH_FAILED, 121);
  EXPECT_THAT(Outcome(job).message(), HasSubstr("n1, n2 did not prepare the ranks within 60 s"));
}

TEST_F(Flow, AHostThatDoesNotAnswerIsNamed) {
  sim_.Cut("n2");
  const uint64_t job = sim_.Submit({"n1", "n2"});
  sim_.Cut("n2");  // refused
  sim_.Settle();
  EXPECT_EQ(sim_.job(job).state, v1::JOB_STATE_PREFLIGHT);
  sim_.FireTimer(TimerKind::kConnect);
  sim_.Settle();  // n1 is asked all the same
  ExpectEnd(job, v1::JOB_STATE_FAILED, v1::CAUSE_PREFLIGHT_FAILED, 120);
  EXPECT_THAT(Outcome(job).message(),
              StartsWith("connect: n2: did not say hello within 20 s (connection refused); fix: "));
  EXPECT_EQ(Outcome(job).host(), "n2");
  EXPECT_THAT(sim_.node("n1").accepted(), ElementsAre("FORGOTTEN"))
      << "the held port is given back";
  EXPECT_FALSE(sim_.state().links.contains("n2")) << "it has never said hello";
  EXPECT_EQ(sim_.state().links.at("n1").state, v1::LINK_STATE_UP);
}

TEST_F(Flow, AFindingRefusesTheJob) {
  sim_.node("n2").faults.program_error = "program train in PATH=/bin: No such file or directory";
  const uint64_t job = sim_.Submit({"n1", "n2"});
  sim_.Settle();
  ExpectEnd(job, v1::JOB_STATE_FAILED, v1::CAUSE_PREFLIGHT_FAILED, 120);
  EXPECT_THAT(Outcome(job).message(), StartsWith("program: n2: program train in PATH=/bin"));
  EXPECT_EQ(Outcome(job).host(), "n2");
}

TEST_F(Flow, NoPortMeansNoStartEvenIfTheCheckIsSkipped) {
  sim_.node("n1").faults.port_error = "10.0.0.1: Cannot assign requested address";
  const uint64_t job = sim_.Submit({"n1"}, 1, {"port"});
  sim_.Settle();
  ExpectEnd(job, v1::JOB_STATE_FAILED, v1::CAUSE_PREFLIGHT_FAILED, 120);
  EXPECT_EQ(
      Outcome(job).message(),
      "the head n1 could hold no port for the ranks: 10.0.0.1: Cannot assign requested address");
}

TEST_F(Flow, UnknownSlotsAreTheDevicesFound) {
  sim_.node("n1").faults.devices = 2;
  sim_.node("n2").faults.devices = 2;
  const uint64_t job = sim_.SubmitUnplanned({"n1", "n2"});
  sim_.Settle();
  EXPECT_EQ(sim_.job(job).state, v1::JOB_STATE_RUNNING);
  EXPECT_EQ(sim_.job(job).plan->world(), 4u);
}

TEST_F(Flow, UnknownSlotsWithoutDevicesAreInvalid) {
  sim_.node("n1").faults.devices = 2;
  const uint64_t job = sim_.SubmitUnplanned({"n1", "n2"});
  sim_.Settle();
  ExpectEnd(job, v1::JOB_STATE_FAILED, v1::CAUSE_INVALID, 2);
  EXPECT_EQ(Outcome(job).message(),
            "hosts:2: n2 has no devices, so its number of slots is unknown; write slots=N");
}

TEST_F(Flow, UnknownSlotsOfAHostListNameItsOwnForm) {
  const uint64_t job = sim_.SubmitUnplanned({"n1"}, "--host");
  sim_.Settle();
  ExpectEnd(job, v1::JOB_STATE_FAILED, v1::CAUSE_INVALID, 2);
  EXPECT_THAT(Outcome(job).message(), EndsWith("unknown; write --host n1:N"));
}

// Nobody listens there: that is known at once, and only a starting daemon would mend it.
TEST_F(Flow, AHostWhereNobodyListensIsGivenUpSoonUnlessTheUserWaits) {
  for (const bool patient : {false, true}) {
    sim_.Cut("n2");
    const uint64_t job = sim_.Submit({"n1", "n2"}, 1, {}, patient ? 60 : 0);
    sim_.Settle();
    sim_.Refuse("n2");
    sim_.now_ns += 3'900'000'000;
    sim_.Refuse("n2");
    EXPECT_EQ(sim_.job(job).state, v1::JOB_STATE_PREFLIGHT) << "it may be just starting";
    sim_.now_ns += 100'000'000;
    sim_.Refuse("n2");
    sim_.Settle();
    if (patient) {
      EXPECT_EQ(sim_.job(job).state, v1::JOB_STATE_PREFLIGHT);
      sim_.FireTimer(TimerKind::kConnect);
      sim_.Settle();
    }
    ExpectEnd(job, v1::JOB_STATE_FAILED, v1::CAUSE_PREFLIGHT_FAILED, 120);
    EXPECT_THAT(Outcome(job).message(),
                StartsWith(patient ? "connect: n2: did not say hello within 60 s (n2: connection "
                                     "refused); fix: "
                                   : "connect: n2: n2: connection refused; fix: "));
    EXPECT_FALSE(sim_.state().links.contains("n2")) << "a name without a worker is forgotten";
    EXPECT_TRUE(sim_.state().links.contains("n1"));
  }
}

// A second hello over a link that is up, of a node whose device tool was slow.
TEST_F(Flow, DevicesThatAreFoundLaterCountForTheNextJob) {
  sim_.node("n1").faults.devices = 2;
  const uint64_t early = sim_.SubmitUnplanned({"n1", "n2"});
  sim_.Settle();
  ExpectEnd(early, v1::JOB_STATE_FAILED, v1::CAUSE_INVALID, 2);
  sim_.node("n2").faults.devices = 2;
  sim_.GreetAgain("n2");
  const uint64_t job = sim_.SubmitUnplanned({"n1", "n2"});
  sim_.Settle();
  EXPECT_EQ(sim_.job(job).state, v1::JOB_STATE_RUNNING);
  EXPECT_EQ(sim_.job(job).plan->world(), 4u);
}

TEST_F(Flow, TheUserStopsARunningJob) {
  const uint64_t job = RunningJob();
  sim_.Stop(job);
  EXPECT_EQ(sim_.job(job).state, v1::JOB_STATE_STOPPING);
  sim_.Settle();
  ExpectEnd(job, v1::JOB_STATE_STOPPED, v1::CAUSE_STOPPED_BY_USER, 130);
  EXPECT_TRUE(sim_.HasEvent(job, "n2: clean, no process of the job is left"));
}

TEST_F(Flow, ASecondStopShortensTheGrace) {
  const uint64_t job = RunningJob();
  sim_.Stop(job, milliseconds(60'000));
  sim_.Stop(job, milliseconds(90'000));
  EXPECT_EQ(sim_.job(job).grace, milliseconds(60'000)) << "never longer";
  sim_.Stop(job, milliseconds(500));
  sim_.Settle();
  EXPECT_EQ(sim_.node("n1").last_grace_seconds(), 0.5);
  ExpectEnd(job, v1::JOB_STATE_STOPPED, v1::CAUSE_STOPPED_BY_USER, 130);
}

TEST_F(Flow, AQueuedJobCanBeStopped) {
  const uint64_t first = RunningJob();
  const uint64_t second = sim_.Submit({"n2", "n3"});
  EXPECT_EQ(sim_.job(second).state, v1::JOB_STATE_QUEUED);
  EXPECT_TRUE(sim_.HasEvent(second, "waits for n2, which job 1 (train) uses"));
  sim_.Stop(second);
  ExpectEnd(second, v1::JOB_STATE_STOPPED, v1::CAUSE_STOPPED_BY_USER, 130);
  EXPECT_EQ(sim_.job(first).state, v1::JOB_STATE_RUNNING);
}

TEST_F(Flow, TheQueueIsFifoForEachHost) {
  const uint64_t first = sim_.Submit({"n1"});
  const uint64_t second = sim_.Submit({"n1", "n2"});
  const uint64_t third = sim_.Submit({"n2"});
  const uint64_t other = sim_.Submit({"n3"});
  sim_.Settle();
  EXPECT_EQ(sim_.job(first).state, v1::JOB_STATE_RUNNING);
  EXPECT_EQ(sim_.job(second).state, v1::JOB_STATE_QUEUED);
  EXPECT_EQ(sim_.job(third).state, v1::JOB_STATE_QUEUED) << "must not overtake";
  EXPECT_TRUE(sim_.HasEvent(third, "waits for n2, which job 2 (train) waits for too"));
  EXPECT_EQ(sim_.job(other).state, v1::JOB_STATE_RUNNING);
  sim_.ExitRank(first, 0, 0);
  sim_.Settle();
  EXPECT_EQ(sim_.job(second).state, v1::JOB_STATE_RUNNING);
}

TEST_F(Flow, ABrokenLinkLeavesTheRanksRunning) {
  const uint64_t job = RunningJob();
  sim_.Cut("n2");
  EXPECT_TRUE(sim_.HasEvent(
      job, "lost the link to n2 (connection refused); its ranks run on, dialling again for 60 s"));
  sim_.Heal("n2");
  sim_.Settle();
  EXPECT_FALSE(sim_.HasTimer(TimerKind::kLost));
  EXPECT_EQ(sim_.job(job).state, v1::JOB_STATE_RUNNING);
  EXPECT_EQ(sim_.node("n2").Running().size(), 2u);
}

TEST_F(Flow, ALostNodeEndsTheJobAndIsStoppedWhenItComesBack) {
  const uint64_t job = RunningJob();
  sim_.Cut("n2");
  sim_.FireTimer(TimerKind::kLost);
  sim_.Settle();
  ExpectEnd(job, v1::JOB_STATE_FAILED, v1::CAUSE_NODE_LOST, 122);
  EXPECT_THAT(Outcome(job).message(),
              EndsWith("n2: unverified, it can't be reached (connection refused)"));
  EXPECT_THAT(sim_.node("n1").Running(), IsEmpty());
  EXPECT_EQ(sim_.node("n2").Running().size(), 2u);
  sim_.Heal("n2");
  sim_.Settle();
  EXPECT_THAT(sim_.node("n2").Running(), IsEmpty());
  EXPECT_TRUE(sim_.HasEvent(
      job, "n2: clean, no process of the job is left (after the job had been given up"));
  EXPECT_TRUE(sim_.job(job).forgotten);
}

TEST_F(Flow, AnUnreachableNodeIsNeverClean) {
  const uint64_t job = RunningJob();
  sim_.Cut("n2");
  sim_.Stop(job, milliseconds(1000));
  sim_.Settle();
  EXPECT_EQ(sim_.job(job).state, v1::JOB_STATE_STOPPING);
  sim_.FireTimer(TimerKind::kStop);
  ExpectEnd(job, v1::JOB_STATE_FAILED, v1::CAUSE_LEFTOVERS, 124);
  EXPECT_THAT(Outcome(job).message(), HasSubstr("n2: unverified, it can't be reached"));
}

TEST_F(Flow, SurvivorsAreNamed) {
  sim_.node("n2").faults.survives_stop = {3};
  const uint64_t job = RunningJob();
  sim_.Stop(job);
  sim_.Settle();
  ExpectEnd(job, v1::JOB_STATE_FAILED, v1::CAUSE_LEFTOVERS, 124);
  EXPECT_THAT(Outcome(job).message(), HasSubstr("n2: still living: pid 1003 (stuck)"));
}

TEST_F(Flow, TheControllerRestartsInTheMiddle) {
  const uint64_t job = RunningJob();
  const size_t before = sim_.events(job).size();
  sim_.Restart();
  sim_.ExitRank(job, 1, 0);  // while nobody listens
  sim_.Settle();
  EXPECT_EQ(sim_.job(job).state, v1::JOB_STATE_RUNNING);
  EXPECT_GT(sim_.events(job).size(), before);
  EXPECT_TRUE(sim_.HasEvent(job, "rank 1 on n1 exited with code 0"));
  sim_.Restart();
  for (const uint32_t rank : {0u, 2u, 3u}) sim_.ExitRank(job, rank, 0);
  sim_.Settle();
  ExpectEnd(job, v1::JOB_STATE_SUCCEEDED, v1::CAUSE_OK, 0);
}

TEST_F(Flow, AStopSurvivesARestart) {
  const uint64_t job = RunningJob();
  sim_.Stop(job);
  sim_.Restart();
  sim_.Settle();
  ExpectEnd(job, v1::JOB_STATE_STOPPED, v1::CAUSE_STOPPED_BY_USER, 130);
}

TEST_F(Flow, AJobInPreflightBeginsAnewAfterARestart) {
  const uint64_t job = sim_.Submit({"n1"});
  EXPECT_EQ(sim_.job(job).state, v1::JOB_STATE_PREFLIGHT);
  sim_.Restart();
  sim_.Settle();
  EXPECT_EQ(sim_.job(job).state, v1::JOB_STATE_RUNNING);
}

}  // namespace
}  // namespace muster::testing
