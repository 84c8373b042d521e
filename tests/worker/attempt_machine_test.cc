// The life of an attempt over a fake world and a fake clock.
#include "worker/ranks/attempt_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/worker/worker_testing.h"

namespace muster::ranks {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
using shim::ShimCommand;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FakeWorld : public AttemptEffects {
 public:
  std::string Spawn(uint32_t rank) override {
    calls.push_back("spawn " + std::to_string(rank));
    return spawn_error;
  }
  void Command(uint32_t rank, ShimCommand command) override {
    calls.push_back(std::string(1, static_cast<char>(command)) + std::to_string(rank));
  }
  ScanResult Scan() override {
    ++scans;
    return scan;
  }
  void Signal(const Leftover& leftover, int signal) override {
    calls.push_back("signal " + std::to_string(leftover.pid) + " " + std::to_string(signal));
  }
  void KillCgroup() override { calls.push_back("cgroup kill"); }
  std::string ErrorRecord(uint32_t) override { return error_record; }
  void Save(const worker::AttemptRecord& record) override { saved = record; }
  void Changed() override { ++changes; }
  void Ended() override { calls.push_back("ended"); }

  std::vector<std::string> Take() { return std::exchange(calls, {}); }

  std::vector<std::string> calls;
  std::string spawn_error;
  std::string error_record = "{}";
  ScanResult scan;
  worker::AttemptRecord saved;
  int scans = 0;
  int changes = 0;
};

Leftover Process(pid_t pid, bool in_tree) {
  Leftover leftover;
  leftover.pid = pid;
  leftover.start_ticks = 1000 + static_cast<uint64_t>(pid);
  leftover.command = "left";
  leftover.state = 'S';
  leftover.in_shim_tree = in_tree;
  return leftover;
}

class AttemptMachineTest : public ::testing::Test {
 protected:
  AttemptMachineTest() { clock_.Advance(1h); }

  void Wish(uint64_t generation, v1::Goal goal, double grace_s = -1) {
    machine_.Apply(testing::Wish(testing::Id("1"), generation, goal, grace_s));
  }
  void PrepareRanks(int count) {
    machine_.Apply(testing::Prepare(testing::Id("1"), {"x"}, count));
    for (int i = 0; i < count; ++i) {
      machine_.OnStatus(static_cast<uint32_t>(i), Status(shim::ShimState::kPrepared));
    }
  }
  // Prepared, started, all running; the calls so far forgotten.
  void RunRanks(int count) {
    PrepareRanks(count);
    Wish(2, v1::GOAL_RUNNING);
    for (int i = 0; i < count; ++i) {
      machine_.OnStatus(static_cast<uint32_t>(i), Status(shim::ShimState::kRunning));
    }
    world_.Take();
  }
  static shim::ShimStatus Status(shim::ShimState state) {
    shim::ShimStatus status;
    status.state = state;
    status.rank_pid = state == shim::ShimState::kPrepared ? 0 : 500;
    return status;
  }
  void Exit(uint32_t rank, int code, bool term = false, bool kill = false) {
    shim::ShimStatus status = Status(shim::ShimState::kExited);
    status.exit_code = code;
    status.signal = code > 128 ? code - 128 : 0;
    status.term_sent = term;
    status.kill_sent = kill;
    status.ended_ns = clock_.RealtimeNs();
    machine_.OnStatus(rank, status);
  }
  // Lets time pass the way the reactor does: to each wanted tick.
  void Pass(std::chrono::nanoseconds duration) {
    const auto end = clock_.Now() + duration;
    while (machine_.NextTick() && *machine_.NextTick() <= end) {
      if (*machine_.NextTick() > clock_.Now()) clock_.Advance(*machine_.NextTick() - clock_.Now());
      machine_.Tick();
    }
    if (clock_.Now() < end) clock_.Advance(end - clock_.Now());
  }
  v1::RankStatus Rank(uint32_t rank) { return testing::RankOf(machine_.Observe(), rank); }
  bool Done() { return machine_.Observe().has_end(); }

  FakeClock clock_;
  FakeWorld world_;
  AttemptMachine machine_{worker::AttemptRecord(), world_, clock_};
};

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

TEST_F(AttemptMachineTest, LostBytesAreNoted) {
  RunRanks(1);
  shim::ShimStatus status = Status(shim::ShimState::kRunning);
  status.streams[0].lost = 100;
  status.lost_error = "write stdout.log: No space left on device";
  machine_.OnStatus(0, status);
  Exit(0, 0);
  Pass(1s);
  ASSERT_EQ(machine_.Observe().end().notes_size(), 1);
  EXPECT_EQ(machine_.Observe().end().notes(0),
            "rank 0: 100 bytes of output lost: write stdout.log: No space left on device");
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
