// Stops of real ranks: grace, escalation, whole trees, and the verified end.
#include <signal.h>

#include "tests/worker/e2e_fixture.h"

namespace muster::testing {
namespace {

using Seconds = std::chrono::duration<double>;

class StopE2e : public WorkerE2e {
 protected:
  // The stop's result and how long it took.
  v1::Observed TimedStop(const v1::AttemptId& id, double grace_s) {
    const auto begin = std::chrono::steady_clock::now();
    v1::Observed stopped = Stop(id, grace_s);
    took_ = Seconds(std::chrono::steady_clock::now() - begin).count();
    return stopped;
  }
  double took_ = 0;
};

TEST_F(StopE2e, IgnoredTermEndsInKillAfterTheGrace) {
  Launch(Job("1"), Golden("ignore_term"), 2);
  ASSERT_TRUE(client_->WaitText(0, v1::STREAM_STDOUT, "ready", 10s));
  ASSERT_TRUE(client_->WaitText(1, v1::STREAM_STDOUT, "ready", 10s));
  const auto stopped = TimedStop(Job("1"), 1.5);
  EXPECT_GE(took_, 1.5);
  EXPECT_LT(took_, 3.5);
  for (const v1::RankStatus& rank : stopped.ranks()) {
    EXPECT_EQ(rank.state(), v1::RANK_STATE_KILLED);
    EXPECT_TRUE(rank.exit().escalated());
    EXPECT_EQ(rank.exit().code(), 137);
  }
  EXPECT_TRUE(stopped.end().verified());
  EXPECT_TRUE(stopped.end().survivors().empty());
  EXPECT_TRUE(stopped.end().swept().empty());
}

TEST_F(StopE2e, StoppedProcessIsToldAndContinued) {
  Launch(Job("2"), Golden("selfstop"));
  const auto seen = client_->WaitFor(
      Job("2"), [](const auto& o) { return RankOf(o, 0).stopped(); }, 5s);
  ASSERT_TRUE(seen);
  const auto stopped = TimedStop(Job("2"), 10);
  EXPECT_LT(took_, 2);
  // It handled TERM and chose its code; the stop is still what ended it.
  EXPECT_EQ(RankOf(stopped, 0).state(), v1::RANK_STATE_KILLED);
  EXPECT_EQ(RankOf(stopped, 0).exit().code(), 5);
  EXPECT_FALSE(RankOf(stopped, 0).exit().escalated());
  EXPECT_FALSE(RankOf(stopped, 0).stopped());
  const auto log = client_->WaitLog(0, v1::STREAM_STDOUT, 5s);
  ASSERT_TRUE(log);
  EXPECT_NE(log->find("got TERM"), std::string::npos);
}

TEST_F(StopE2e, GrandchildInItsOwnSessionGoesToo) {
  Launch(Job("3"), Golden("setsid_grandchild", {"60"}));
  ASSERT_TRUE(client_->WaitText(0, v1::STREAM_STDOUT, "grandchild", 10s));
  ASSERT_TRUE(client_->WaitText(0, v1::STREAM_STDOUT, "waits", 10s));
  const auto stopped = TimedStop(Job("3"), 1);
  EXPECT_LT(took_, 3);
  EXPECT_EQ(RankOf(stopped, 0).exit().code(), 0);
  ASSERT_EQ(stopped.end().swept_size(), 1);
  EXPECT_TRUE(stopped.end().survivors().empty());
  EXPECT_TRUE(ProcessesOf(controller_).empty());
}

TEST_F(StopE2e, DataLoadersGoToo) {
  Launch(Job("4"), Golden("dataloader", {"30", "60"}));
  ASSERT_TRUE(client_->WaitText(0, v1::STREAM_STDOUT, "children", 10s));
  const auto stopped = TimedStop(Job("4"), 1);
  EXPECT_LT(took_, 3.5);
  EXPECT_TRUE(stopped.end().survivors().empty());
  EXPECT_TRUE(ProcessesOf(controller_).empty());
}

TEST_F(StopE2e, GraceLongEnoughLetsTheSaveFinish) {
  Launch(Job("5"), Golden("slow_save", {"1"}));
  ASSERT_TRUE(client_->WaitText(0, v1::STREAM_STDOUT, "training", 10s));
  const auto stopped = TimedStop(Job("5"), 20);
  EXPECT_LT(took_, 5);
  EXPECT_EQ(RankOf(stopped, 0).exit().code(), 0);
  const auto log = client_->WaitLog(0, v1::STREAM_STDOUT, 5s);
  ASSERT_TRUE(log);
  EXPECT_NE(log->find("saved"), std::string::npos);
  EXPECT_EQ(log->find("TERM again"), std::string::npos);
}

TEST_F(StopE2e, ALaterWishShortensTheGrace) {
  Launch(Job("6"), Golden("slow_save", {"60"}));
  ASSERT_TRUE(client_->WaitText(0, v1::STREAM_STDOUT, "training", 10s));
  client_->Send(Wish(Job("6"), 3, v1::GOAL_STOPPED, 60));
  ASSERT_TRUE(client_->WaitText(0, v1::STREAM_STDOUT, "saving", 5s));
  const auto stopped = TimedStop(Job("6"), 0.5);
  EXPECT_LT(took_, 2.5);
  EXPECT_EQ(RankOf(stopped, 0).state(), v1::RANK_STATE_KILLED);
  EXPECT_TRUE(RankOf(stopped, 0).exit().escalated());
  // TERM came once, however often the stop was wished for.
  EXPECT_EQ(client_->LogSoFar(0, v1::STREAM_STDOUT).find("TERM again"), std::string::npos);
}

TEST_F(StopE2e, PreparedRanksNeverRun) {
  client_->Send(Prepare(Job("7"), Golden("step_log"), 3));
  ASSERT_TRUE(client_->WaitFor(
      Job("7"), [](const auto& o) { return o.reached(); }, 10s));
  const auto stopped = TimedStop(Job("7"), 5);
  EXPECT_LT(took_, 2);
  EXPECT_TRUE(AllIn(stopped, v1::RANK_STATE_ABSENT));
  // Their streams are empty but whole, so that the controller need not wait for them.
  for (uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(client_->WaitLog(rank, v1::STREAM_STDOUT, 5s), "");
  }
}

TEST_F(StopE2e, RanksThatEndedBeforeTheStopKeepTheirState) {
  Launch(Job("8"), {"/bin/sh", "-c", "[ $RANK = 0 ] && exit 3; exec sleep 60"}, 2);
  ASSERT_TRUE(client_->WaitFor(
      Job("8"), [](const auto& o) { return RankOf(o, 0).state() == v1::RANK_STATE_EXITED; }, 5s));
  const auto stopped = TimedStop(Job("8"), 5);
  EXPECT_EQ(RankOf(stopped, 0).state(), v1::RANK_STATE_EXITED);
  EXPECT_EQ(RankOf(stopped, 0).exit().code(), 3);
  EXPECT_EQ(RankOf(stopped, 1).state(), v1::RANK_STATE_KILLED);
  EXPECT_EQ(RankOf(stopped, 1).exit().code(), 143);
  EXPECT_EQ(RankOf(stopped, 1).exit().wait_order(), 2u);
}

TEST_F(StopE2e, ManyRanksStopInParallel) {
  Launch(Job("9"), Golden("ignore_term"), 8);
  for (uint32_t rank = 0; rank < 8; ++rank) {
    ASSERT_TRUE(client_->WaitText(rank, v1::STREAM_STDOUT, "ready", 20s));
  }
  TimedStop(Job("9"), 1);
  EXPECT_LT(took_, 5);  // one after another would take 8 s
}

TEST_F(StopE2e, AnotherControllersRanksAreNotTouched) {
  Launch(Job("10"), {"sleep", "60"});
  Client other("unix:" + state_dir() + "/musterd.sock", "other");
  ASSERT_TRUE(other.WaitHello(5s));
  other.Send(Wish(Job("10"), 50, v1::GOAL_STOPPED, 0));
  const auto refused = other.WaitFor(
      Job("10"), [](const auto& o) { return !o.refused().empty(); }, 5s);
  ASSERT_TRUE(refused);
  EXPECT_NE(refused->refused().find("belongs to another controller"), std::string::npos);
  EXPECT_EQ(ProcessesOf(controller_).size(), 1u);
  Stop(Job("10"), 5);
}

TEST_F(StopE2e, TwoDaemonsOfOneMachineKeepApart) {
  // Two "hosts" of a demo: same machine, same user, same attempt.
  const std::string second = temp_.path() + "/s2";
  Daemon daemon({"--state-dir", second, "--name", "node2"});
  Client client("unix:" + second + "/musterd.sock", controller_);
  ASSERT_TRUE(client.WaitHello(10s));
  Launch(Job("11"), {"sleep", "60"});
  client.Send(Prepare(Job("11"), {"sleep", "60"}));
  client.Send(Wish(Job("11"), 2, v1::GOAL_RUNNING));
  ASSERT_TRUE(client.WaitFor(
      Job("11"), [](const auto& o) { return AllIn(o, v1::RANK_STATE_RUNNING); }, 10s));
  const auto stopped = Stop(Job("11"), 5);
  EXPECT_TRUE(stopped.end().swept().empty());
  EXPECT_EQ(ProcessesOf(controller_).size(), 1u);
  client.Send(Wish(Job("11"), 3, v1::GOAL_STOPPED, 5));
  EXPECT_TRUE(client.WaitFor(
      Job("11"), [](const auto& o) { return o.has_end(); }, 10s));
}

}  // namespace
}  // namespace muster::testing
