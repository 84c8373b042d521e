// The life of an attempt over a fake world and a fake clock.
#include "tests/worker/attempt_machine_testing.h"

namespace muster::ranks {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(AttemptMachineTest, ErrorRecordsOfManyRanksFitAMessage) {
  RunRanks(100);
  world_.error_record = std::string(64 << 10, 'x');
  for (uint32_t rank = 0; rank < 100; ++rank) Exit(rank, 1);
  EXPECT_EQ(Rank(0).exit().error_record().size(), 64u << 10);
  EXPECT_EQ(Rank(99).exit().error_record(), "");
  EXPECT_LT(machine_.Observe().ByteSizeLong(), (1u << 20) + 65536);
}

TEST_F(AttemptMachineTest, IsNotIdleWhileItLooksForLeftovers) {
  RunRanks(1);
  world_.scan.processes = {Process(7, false)};
  Exit(0, 0);
  machine_.OnGone(0, std::nullopt);
  Pass(200ms);
  EXPECT_FALSE(machine_.Idle());
  world_.scan.processes.clear();
  Pass(1s);
  EXPECT_TRUE(Done());
  EXPECT_TRUE(machine_.Idle());
}

TEST_F(AttemptMachineTest, PreparesThenStartsOnce) {
  PrepareRanks(2);
  EXPECT_THAT(world_.Take(), ElementsAre("spawn 0", "spawn 1"));
  EXPECT_TRUE(machine_.Observe().reached());
  EXPECT_EQ(world_.saved.generation(), 1u);
  Wish(2, v1::GOAL_RUNNING);
  EXPECT_THAT(world_.Take(), ElementsAre("S0", "S1"));
  EXPECT_FALSE(machine_.Observe().reached());
  machine_.OnStatus(0, Status(shim::ShimState::kRunning));
  machine_.OnStatus(1, Status(shim::ShimState::kRunning));
  EXPECT_TRUE(machine_.Observe().reached());
  // The same wish again starts nothing.
  Wish(2, v1::GOAL_RUNNING);
  EXPECT_THAT(world_.Take(), IsEmpty());
}

TEST_F(AttemptMachineTest, AStartThatOvertookThePreparationIsObeyed) {
  machine_.Apply(testing::Prepare(testing::Id("1"), {"x"}, 1));
  Wish(2, v1::GOAL_RUNNING);
  world_.Take();
  machine_.OnStatus(0, Status(shim::ShimState::kPrepared));
  EXPECT_THAT(world_.Take(), ElementsAre("S0"));
}

TEST_F(AttemptMachineTest, AShimThatCannotBeStartedIsTold) {
  world_.spawn_error = "start muster-shim: No such file or directory";
  machine_.Apply(testing::Prepare(testing::Id("1"), {"x"}, 1));
  EXPECT_EQ(Rank(0).state(), v1::RANK_STATE_ABSENT);
  EXPECT_EQ(Rank(0).error(), world_.spawn_error);
  EXPECT_FALSE(machine_.Observe().reached());
}

TEST_F(AttemptMachineTest, WaitOrderIsTheOrderOfTheWaits) {
  RunRanks(3);
  Exit(2, 1);
  Exit(0, 0);
  Exit(1, 0);
  EXPECT_EQ(Rank(2).exit().wait_order(), 1u);
  EXPECT_EQ(Rank(0).exit().wait_order(), 2u);
  EXPECT_EQ(Rank(1).exit().wait_order(), 3u);
  EXPECT_EQ(Rank(2).exit().error_record(), "{}");
  // A repeated message is no second exit.
  Exit(2, 1);
  EXPECT_EQ(Rank(2).exit().wait_order(), 1u);
}

TEST_F(AttemptMachineTest, NaturalEndIsVerified) {
  RunRanks(2);
  Exit(0, 0);
  Pass(10s);
  EXPECT_FALSE(Done());
  Exit(1, 3);
  EXPECT_FALSE(Done());
  Pass(150ms);
  ASSERT_TRUE(Done());
  EXPECT_TRUE(machine_.Observe().end().verified());
  EXPECT_EQ(Rank(1).state(), v1::RANK_STATE_EXITED);
  EXPECT_THAT(world_.Take(), ElementsAre("Q0", "Q1", "ended"));
}

TEST_F(AttemptMachineTest, LeftoversOfANaturalEndGetTwoSeconds) {
  RunRanks(1);
  world_.scan.processes = {Process(77, /*in_tree=*/true)};
  Exit(0, 0);
  Pass(200ms);
  EXPECT_THAT(world_.Take(), ElementsAre("T0"));
  Pass(1800ms);
  EXPECT_THAT(world_.Take(), IsEmpty());  // TERM once
  Pass(200ms);
  auto calls = world_.Take();
  ASSERT_FALSE(calls.empty());
  EXPECT_EQ(calls[0], "K0");
  world_.scan.processes.clear();
  Pass(100ms);
  ASSERT_TRUE(Done());
  ASSERT_EQ(machine_.Observe().end().swept_size(), 1);
  EXPECT_EQ(machine_.Observe().end().swept(0).pid(), 77u);
}

TEST_F(AttemptMachineTest, LostShim) {
  RunRanks(1);
  machine_.OnGone(0, std::nullopt);
  EXPECT_EQ(Rank(0).state(), v1::RANK_STATE_EXITED);
  EXPECT_TRUE(Rank(0).exit().shim_lost());
  EXPECT_EQ(Rank(0).exit().code(), 137);
  Pass(1s);
  EXPECT_TRUE(Done());
}

TEST_F(AttemptMachineTest, AShimThatLeftARecordIsNotLost) {
  RunRanks(1);
  shim::ShimStatus last = Status(shim::ShimState::kExited);
  last.exit_code = 4;
  machine_.OnGone(0, last);
  EXPECT_EQ(Rank(0).exit().code(), 4);
  EXPECT_FALSE(Rank(0).exit().shim_lost());
}

TEST_F(AttemptMachineTest, LostBytesAreCounted) {
  RunRanks(1);
  shim::ShimStatus status = Status(shim::ShimState::kRunning);
  status.streams[0].lost = 100;
  status.lost_error = "write stdout.log: No space left on device";
  machine_.OnStatus(0, status);
  EXPECT_EQ(Rank(0).lost_bytes(), 100U);
  EXPECT_EQ(Rank(0).lost_reason(), "write stdout.log: No space left on device");
  machine_.SetDropped(0, 20);
  EXPECT_EQ(Rank(0).lost_bytes(), 120U);
  AttemptMachine next(machine_.record(), world_, clock_);
  next.SetDropped(0, 20);  // a restarted daemon: until its shim speaks, what was known stays
  EXPECT_EQ(next.Observe().ranks(0).lost_bytes(), 120U);
  next.OnStatus(0, status);
  EXPECT_EQ(next.Observe().ranks(0).lost_bytes(), 120U);
}

TEST_F(AttemptMachineTest, DroppedBytesHaveAReason) {
  RunRanks(1);
  machine_.OnStatus(0, Status(shim::ShimState::kRunning));
  machine_.SetDropped(0, 7);
  EXPECT_EQ(Rank(0).lost_bytes(), 7U);
  EXPECT_EQ(Rank(0).lost_reason(), "its node had to drop them; its log has markers");
}

TEST_F(AttemptMachineTest, ARestartedDaemonKeepsTheDeadline) {
  RunRanks(1);
  Wish(3, v1::GOAL_STOPPED, 10);
  Pass(4s);
  FakeWorld world;
  AttemptMachine next(world_.saved, world, clock_);
  next.OnAdopted(0);
  next.OnStatus(0, Status(shim::ShimState::kRunning));
  EXPECT_THAT(world.Take(), ElementsAre("T0"));  // the shim knows whom it has told already
  ASSERT_TRUE(next.NextTick());
  EXPECT_EQ(*next.NextTick() - clock_.Now(), 6s);
}

TEST_F(AttemptMachineTest, ForgettingWaitsForTheEnd) {
  RunRanks(1);
  Exit(0, 0);
  Wish(3, v1::GOAL_FORGOTTEN);
  EXPECT_FALSE(machine_.MayForget());
  Pass(1s);
  EXPECT_FALSE(machine_.MayForget());  // the shim is still draining
  machine_.OnGone(0, std::nullopt);
  ASSERT_TRUE(machine_.MayForget());
  EXPECT_FALSE(machine_.Observe().reached());
  machine_.MarkForgotten();
  EXPECT_TRUE(machine_.Observe().reached());
}

}  // namespace
}  // namespace muster::ranks
