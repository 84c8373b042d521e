// The end of an attempt by a stop, over a fake world and a fake clock.
#include "tests/worker/attempt_machine_testing.h"

namespace muster::ranks {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(AttemptMachineTest, StopGivesTheGraceThenKills) {
  RunRanks(2);
  Wish(3, v1::GOAL_STOPPED, 10);
  EXPECT_THAT(world_.Take(), ElementsAre("T0", "T1"));
  EXPECT_EQ(world_.saved.goal(), v1::GOAL_STOPPED);
  Exit(0, 0, /*term=*/true);
  Pass(9900ms);
  EXPECT_THAT(world_.Take(), IsEmpty());
  Pass(100ms);
  EXPECT_THAT(world_.Take(), ElementsAre("K0", "K1"));
  Exit(1, 137, true, true);
  Pass(200ms);
  ASSERT_TRUE(Done());
  EXPECT_TRUE(machine_.Observe().reached());
  EXPECT_EQ(Rank(0).state(), v1::RANK_STATE_KILLED);
  EXPECT_EQ(Rank(0).exit().code(), 0);
  EXPECT_FALSE(Rank(0).exit().escalated());
  EXPECT_TRUE(Rank(1).exit().escalated());
}

TEST_F(AttemptMachineTest, AShorterGraceCounts) {
  RunRanks(1);
  Wish(3, v1::GOAL_STOPPED, 100);
  Pass(1s);
  Wish(4, v1::GOAL_STOPPED, 200);  // longer: ignored
  Wish(5, v1::GOAL_STOPPED, 2);
  world_.Take();
  Pass(1900ms);
  EXPECT_THAT(world_.Take(), IsEmpty());
  Pass(100ms);
  EXPECT_THAT(world_.Take(), ElementsAre("K0"));
}

TEST_F(AttemptMachineTest, ZeroGraceKillsAtOnce) {
  RunRanks(1);
  Wish(3, v1::GOAL_STOPPED, 0);
  EXPECT_THAT(world_.Take(), ElementsAre("T0", "K0"));
}

TEST_F(AttemptMachineTest, NoGraceMeansThirtySeconds) {
  RunRanks(1);
  Wish(3, v1::GOAL_STOPPED);
  world_.Take();
  Pass(29900ms);
  EXPECT_THAT(world_.Take(), IsEmpty());
  Pass(200ms);
  EXPECT_EQ(world_.Take().at(0), "K0");
}

TEST_F(AttemptMachineTest, ATreeKeepsTheRestOfTheGrace) {
  RunRanks(1);
  Wish(3, v1::GOAL_STOPPED, 5);
  world_.scan.processes = {Process(77, true)};
  Exit(0, 0, true);
  Pass(4500ms);
  EXPECT_FALSE(Done());
  world_.scan.processes.clear();  // it finished its work in time
  Pass(200ms);
  EXPECT_TRUE(Done());
  for (const std::string& call : world_.Take()) EXPECT_NE(call[0], 'K');
}

TEST_F(AttemptMachineTest, WhatIsInNobodysTreeIsSignalledDirectly) {
  RunRanks(1);
  world_.scan.processes = {Process(88, false)};
  Wish(3, v1::GOAL_STOPPED, 1);
  EXPECT_THAT(world_.Take(), ElementsAre("T0", "signal 88 15"));
  Exit(0, 0, true);
  Pass(900ms);
  EXPECT_THAT(world_.Take(), IsEmpty());
  Pass(200ms);
  EXPECT_THAT(world_.Take(), ::testing::IsSupersetOf({"K0", "signal 88 9", "cgroup kill"}));
}

TEST_F(AttemptMachineTest, SurvivorsAreNamedAfterFiveSeconds) {
  RunRanks(1);
  Wish(3, v1::GOAL_STOPPED, 1);
  Leftover stuck = Process(99, true);
  stuck.state = 'D';
  stuck.wait_channel = "nfs_wait";
  stuck.rank = 0;
  world_.scan.processes = {stuck};
  Pass(5800ms);
  EXPECT_FALSE(Done());
  Pass(400ms);
  ASSERT_TRUE(Done());
  const v1::Observed observed = machine_.Observe();
  ASSERT_EQ(observed.end().survivors_size(), 1);
  EXPECT_EQ(observed.end().survivors(0).state(), "D");
  EXPECT_EQ(observed.end().survivors(0).wait_channel(), "nfs_wait");
  EXPECT_FALSE(observed.reached());  // the rank itself still runs
  // Asked again, it tries again.
  world_.Take();
  Wish(4, v1::GOAL_STOPPED, 1);
  EXPECT_EQ(world_.Take().at(0), "K0");
  world_.scan.processes.clear();
  Exit(0, 137, true, true);
  Pass(1s);
  EXPECT_TRUE(machine_.Observe().reached());
  EXPECT_TRUE(machine_.Observe().end().survivors().empty());
}

TEST_F(AttemptMachineTest, AnIncompleteLookIsNotVerified) {
  RunRanks(1);
  world_.scan.unverified = "/proc could not be read";
  Exit(0, 0);
  Pass(1s);
  ASSERT_TRUE(Done());
  EXPECT_FALSE(machine_.Observe().end().verified());
  EXPECT_EQ(machine_.Observe().end().notes(0), "/proc could not be read");
}

TEST_F(AttemptMachineTest, PreparedRanksOfAStopBecomeAbsent) {
  PrepareRanks(2);
  world_.Take();
  Wish(2, v1::GOAL_STOPPED, 5);
  EXPECT_THAT(world_.Take(), ElementsAre("Q0", "Q1"));
  machine_.OnGone(0, std::nullopt);
  machine_.OnGone(1, std::nullopt);
  Pass(200ms);
  EXPECT_TRUE(machine_.Observe().reached());
  EXPECT_EQ(Rank(0).state(), v1::RANK_STATE_ABSENT);
  EXPECT_EQ(Rank(0).error(), "");
}

TEST_F(AttemptMachineTest, AStartUnderWayWhenTheStopComesIsCaught) {
  PrepareRanks(1);
  Wish(2, v1::GOAL_RUNNING);
  Wish(3, v1::GOAL_STOPPED, 5);
  world_.Take();
  machine_.OnStatus(0, Status(shim::ShimState::kRunning));
  EXPECT_THAT(world_.Take(), ElementsAre("T0"));
}

}  // namespace
}  // namespace muster::ranks
