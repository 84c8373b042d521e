// The end of an attempt beyond processes: saving first, shims that don't obey, devices and ports.
#include <unistd.h>

#include "tests/worker/attempt_machine_testing.h"

namespace muster::ranks {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

class AttemptProofTest : public AttemptMachineTest {
 protected:
  void SaveWish(uint64_t generation, uint32_t signal, double grace_s) {
    v1::Desired wish = testing::Wish(testing::Id("1"), generation, v1::GOAL_STOPPED, grace_s);
    wish.set_save_signal(signal);
    machine_.Apply(wish);
  }
};

TEST_F(AttemptProofTest, ASaveSignalsTheRanksAlone) {
  RunRanks(2);
  SaveWish(3, SIGUSR1, 600);
  EXPECT_THAT(world_.Take(), ElementsAre("rank 0 signal 10", "rank 1 signal 10"));
  Pass(300s);
  EXPECT_THAT(world_.Take(), IsEmpty());
  Exit(0, 75);
  Exit(1, 75);
  Pass(200ms);
  ASSERT_TRUE(Done());
  EXPECT_EQ(Rank(0).state(), v1::RANK_STATE_EXITED);
  EXPECT_EQ(Rank(0).exit().code(), 75);
}

TEST_F(AttemptProofTest, WhatASaveLeavesBehindHasNoneOfItsGrace) {
  RunRanks(1);
  SaveWish(3, SIGTERM, 600);
  world_.Take();
  world_.scan.processes = {Process(77, false)};
  Exit(0, 75);
  Pass(1s);
  EXPECT_THAT(world_.Take(), Contains("signal 77 15"));
  Pass(2s);
  EXPECT_THAT(world_.Take(), Contains("signal 77 9"));
}

TEST_F(AttemptProofTest, ASaveThatTakesTooLongIsKilled) {
  RunRanks(1);
  SaveWish(3, SIGTERM, 10);
  world_.Take();
  Pass(10s);
  EXPECT_THAT(world_.Take(), Contains("K0"));
}

TEST_F(AttemptProofTest, AnOrdinaryStopEndsTheWaitForASave) {
  RunRanks(1);
  SaveWish(3, SIGUSR1, 600);
  world_.Take();
  SaveWish(3, SIGUSR1, 600);  // the same wish again, after a broken link
  EXPECT_THAT(world_.Take(), IsEmpty());
  Wish(4, v1::GOAL_STOPPED, 5);
  EXPECT_THAT(world_.Take(), ElementsAre("T0"));
  Pass(5s);
  EXPECT_THAT(world_.Take(), Contains("K0"));
}

TEST_F(AttemptProofTest, StoppedShimsAreWokenBeforeTheyAreTold) {
  RunRanks(1);
  Wish(3, v1::GOAL_STOPPED, 5);
  EXPECT_EQ(world_.wakes, 1);
  Pass(5s);
  EXPECT_EQ(world_.wakes, 2);
}

TEST_F(AttemptProofTest, AShimThatDoesNotObeyIsPassedByAndThenKilled) {
  RunRanks(1);
  world_.scan.processes = {Process(500, true)};
  Wish(3, v1::GOAL_STOPPED, 1);
  Pass(1900ms);
  EXPECT_THAT(world_.Take(), Not(Contains("signal 500 9")));
  Pass(200ms);
  EXPECT_THAT(world_.Take(), Contains("signal 500 9"));
  world_.scan.processes.clear();  // killed, but its shim says nothing
  Pass(1s);
  EXPECT_THAT(world_.Take(), Not(Contains("kill shim 0")));
  Pass(1s);
  EXPECT_THAT(world_.Take(), Contains("kill shim 0"));
  machine_.OnGone(0, std::nullopt);
  Pass(500ms);
  ASSERT_TRUE(Done());
  EXPECT_TRUE(machine_.Observe().end().verified());
  EXPECT_EQ(Rank(0).state(), v1::RANK_STATE_KILLED);
}

TEST_F(AttemptProofTest, AShimThatGivesNoAnswerAtAllIsNotVerified) {
  RunRanks(1);
  Wish(3, v1::GOAL_STOPPED, 1);
  Pass(7s);
  ASSERT_TRUE(Done());
  EXPECT_FALSE(machine_.Observe().end().verified());
  EXPECT_THAT(machine_.Observe().end().notes(),
              ElementsAre("rank 0: its muster-shim gives no answer"));
}

TEST_F(AttemptProofTest, ShimsWithoutChildrenAreProofEnough) {
  RunRanks(2);
  world_.scan.unverified = "must not be asked";
  Exit(0, 0, false, false, true);
  EXPECT_FALSE(world_.inspecting);
  Exit(1, 0, false, false, true);
  EXPECT_TRUE(world_.inspecting);  // at once: no tree has to fall any more
  Answer();
  ASSERT_TRUE(Done());
  EXPECT_EQ(world_.scans, 0);
  EXPECT_TRUE(machine_.Observe().end().verified());
}

TEST_F(AttemptProofTest, OneTreeThatStillStandsIsLookedFor) {
  RunRanks(2);
  Exit(0, 0, false, false, true);
  Exit(1, 0);
  Pass(99ms);
  EXPECT_EQ(world_.scans, 0);
  Pass(1ms);
  EXPECT_GT(world_.scans, 0);
}

TEST_F(AttemptProofTest, ATreeThatFallsWithinTheMomentNeedsNoLook) {
  RunRanks(1);
  Exit(0, 0);
  Pass(50ms);
  Exit(0, 0, false, false, true);
  Answer();
  ASSERT_TRUE(Done());
  EXPECT_EQ(world_.scans, 0);
}

TEST_F(AttemptProofTest, WhatTheControllerWaitsForIsDecided) {
  machine_.Apply(testing::Prepare(testing::Id("1"), {"x"}, 2));
  EXPECT_FALSE(machine_.Decided());
  machine_.OnStatus(0, Status(shim::ShimState::kPrepared));
  EXPECT_FALSE(machine_.Decided());
  machine_.OnStatus(1, Status(shim::ShimState::kPrepared));
  EXPECT_TRUE(machine_.Decided());
  Wish(2, v1::GOAL_RUNNING);
  machine_.OnStatus(0, Status(shim::ShimState::kRunning));
  EXPECT_FALSE(machine_.Decided());
  Exit(0, 0);
  EXPECT_FALSE(machine_.Decided());
  Exit(1, 3);
  EXPECT_TRUE(machine_.Decided());
  Wish(3, v1::GOAL_STOPPED);
  Pass(200ms);
  ASSERT_TRUE(Done());
  EXPECT_TRUE(machine_.Decided());
}

TEST_F(AttemptProofTest, AfterAFailureEverythingIsLookedFor) {
  RunRanks(2);
  Exit(0, 0, false, false, true);
  Exit(1, 1, false, false, true);
  Pass(200ms);
  ASSERT_TRUE(Done());
  EXPECT_GT(world_.scans, 0);
}

TEST_F(AttemptProofTest, TheEndWaitsForTheLookAtDevicesAndPort) {
  world_.blind = true;
  RunRanks(1);
  Exit(0, 0);
  Pass(10s);
  EXPECT_TRUE(world_.inspecting);
  EXPECT_FALSE(world_.kernel_since);
  EXPECT_FALSE(Done());
  world_.found.held = {"device 0: 39.0 GiB in use"};
  world_.found.notes = {"port 1 is held by pid 2 (x), of another job"};
  machine_.OnInspected(world_.found);
  ASSERT_TRUE(Done());
  const v1::EndReport end = machine_.Observe().end();
  EXPECT_TRUE(end.verified());
  EXPECT_THAT(end.held(), ElementsAre("device 0: 39.0 GiB in use"));
  EXPECT_EQ(end.notes_size(), 1);
  EXPECT_FALSE(end.has_kernel());
  // Asked again, it looks again.
  world_.blind = false;
  world_.found = {};
  Wish(3, v1::GOAL_STOPPED, 1);
  Answer();
  Pass(500ms);
  ASSERT_TRUE(Done());
  EXPECT_THAT(machine_.Observe().end().held(), IsEmpty());
}

TEST_F(AttemptProofTest, AFailureAsksForTheKernelsLogFromAMinuteBefore) {
  RunRanks(1);
  world_.port_holders = {"10.0.0.1:29500 is in use by pid 7 (x)"};
  world_.found.kernel.emplace().add_faults()->set_text("Out of memory");
  Exit(0, 98);
  const int64_t ended = Rank(0).exit().ended_ns();
  Pass(200ms);
  ASSERT_TRUE(Done());
  EXPECT_EQ(world_.kernel_since, ended - 60'000'000'000);
  EXPECT_EQ(machine_.Observe().end().kernel().faults_size(), 1);
  EXPECT_THAT(Rank(0).exit().port_holders(), ElementsAre("10.0.0.1:29500 is in use by pid 7 (x)"));
}

TEST_F(AttemptProofTest, ANodeThatCouldNotLookIsNotVerified) {
  world_.found.unverified = "its devices could not be asked: no answer";
  RunRanks(1);
  Exit(0, 0);
  Pass(200ms);
  ASSERT_TRUE(Done());
  EXPECT_FALSE(machine_.Observe().end().verified());
  EXPECT_THAT(machine_.Observe().end().notes(),
              ElementsAre("its devices could not be asked: no answer"));
}

}  // namespace
}  // namespace muster::ranks
