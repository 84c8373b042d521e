// kill -9 of the daemon at bad moments: the next one finds the shims and carries on.
#include "tests/worker/e2e_fixture.h"
#include "worker/facts/proc_reader.h"

namespace muster::testing {
namespace {

class RestartE2e : public WorkerE2e {};

TEST_F(RestartE2e, RunningRanksAreAdoptedAndNoByteIsLost) {
  Launch(Job("1"),
         {"/bin/sh", "-c",
          "i=0; while [ $i -lt 40 ]; do echo line $i; i=$((i+1)); sleep 0.05; done; exit 9"},
         2);
  ASSERT_TRUE(client_->WaitText(0, v1::STREAM_STDOUT, "line 5\n", 10s));
  Restart();
  const auto again = client_->WaitFor(
      Job("1"), [](const auto& o) { return AllIn(o, v1::RANK_STATE_RUNNING); }, 5s);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->generation(), 2u);
  const auto end = WaitEnd(Job("1"), 20s);
  EXPECT_EQ(RankOf(end, 0).exit().code(), 9);
  std::string want;
  for (int i = 0; i < 40; ++i) want += "line " + std::to_string(i) + "\n";
  EXPECT_EQ(ReadFile(RankFile(Job("1"), 0, "stdout.log")), want);
  const auto log = client_->WaitLog(1, v1::STREAM_STDOUT, 5s);
  ASSERT_TRUE(log);
}

TEST_F(RestartE2e, ResendsOnlyWhatWasNotAcknowledged) {
  Launch(Job("2"), {"/bin/sh", "-c", "head -c 3000000 /dev/zero; sleep 2"});
  ASSERT_TRUE(client_->WaitFor(
      Job("2"), [](const auto&) { return true; }, 5s));
  const auto deadline = std::chrono::steady_clock::now() + 5s;
  while (client_->BytesReceived() < 3000000 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(10ms);
  }
  std::this_thread::sleep_for(800ms);  // the acknowledgements are kept every half second
  Restart();
  WaitEnd(Job("2"), 10s);
  const auto deadline2 = std::chrono::steady_clock::now() + 2s;
  while (client_->BytesReceived() == 0 && std::chrono::steady_clock::now() < deadline2) {
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(client_->BytesReceived(), 0u);
}

TEST_F(RestartE2e, ExitsThatNobodyWatchedAreTold) {
  Launch(Job("3"), {"/bin/sh", "-c", "sleep 0.$((5 - RANK)); echo bye; exit $((RANK + 20))"}, 3);
  daemon_->KillHard();
  client_.reset();
  std::this_thread::sleep_for(1s);
  StartDaemon();
  const auto end = WaitEnd(Job("3"), 5s);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(RankOf(end, rank).exit().code(), static_cast<int>(rank) + 20);
    EXPECT_EQ(RankOf(end, rank).exit().wait_order(), 3 - rank);
    EXPECT_EQ(client_->WaitLog(rank, v1::STREAM_STDOUT, 5s), "bye\n");
  }
}

TEST_F(RestartE2e, AStopGoesOnWithItsRemainingGrace) {
  Launch(Job("4"), Golden("ignore_term"));
  ASSERT_TRUE(client_->WaitText(0, v1::STREAM_STDOUT, "ready", 10s));
  const auto begin = std::chrono::steady_clock::now();
  client_->Send(Wish(Job("4"), 3, v1::GOAL_STOPPED, 3));
  ASSERT_TRUE(client_->WaitFor(
      Job("4"), [](const auto& o) { return o.generation() == 3; }, 5s));
  std::this_thread::sleep_for(1s);
  Restart();
  const auto end = WaitEnd(Job("4"), 10s);
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, 3s);
  EXPECT_LT(took, 5s);
  EXPECT_EQ(RankOf(end, 0).state(), v1::RANK_STATE_KILLED);
  EXPECT_TRUE(RankOf(end, 0).exit().escalated());
}

TEST_F(RestartE2e, PreparedRanksAreStartedByTheNextDaemon) {
  client_->Send(Prepare(Job("5"), Golden("exit", {"4"})));
  ASSERT_TRUE(client_->WaitFor(
      Job("5"), [](const auto& o) { return o.reached(); }, 10s));
  Restart();
  ASSERT_TRUE(client_->WaitFor(
      Job("5"), [](const auto& o) { return o.reached(); }, 10s));
  client_->Send(Wish(Job("5"), 2, v1::GOAL_RUNNING));
  EXPECT_EQ(RankOf(WaitEnd(Job("5")), 0).exit().code(), 4);
}

TEST_F(RestartE2e, LeftoversOfARankThatEndedMeanwhileAreSwept) {
  Launch(Job("6"), {"/bin/sh", "-c", "setsid sleep 60 & exec sleep 0.3"});
  daemon_->KillHard();
  client_.reset();
  std::this_thread::sleep_for(800ms);
  StartDaemon();
  const auto end = WaitEnd(Job("6"), 10s);
  EXPECT_EQ(RankOf(end, 0).exit().code(), 0);
  ASSERT_EQ(end.end().swept_size(), 1);
  EXPECT_NE(end.end().swept(0).command().find("sleep 60"), std::string::npos);
}

TEST_F(RestartE2e, DaemonAndShimBothLost) {
  const auto running = Launch(Job("7"), Golden("setsid_grandchild", {"60"}));
  // Both lines: the grandchild would die of its own print once nobody reads its pipe.
  ASSERT_TRUE(client_->WaitText(0, v1::STREAM_STDOUT, "grandchild", 10s));
  ASSERT_TRUE(client_->WaitText(0, v1::STREAM_STDOUT, "waits", 10s));
  const auto rank = static_cast<pid_t>(RankOf(running, 0).pid());
  const pid_t shim = facts::ProcReader::Real().Stat(rank)->ppid;
  std::this_thread::sleep_for(100ms);
  daemon_->KillHard();
  client_.reset();
  kill(shim, SIGKILL);
  StartDaemon();
  const auto end = WaitEnd(Job("7"), 10s);
  EXPECT_TRUE(RankOf(end, 0).exit().shim_lost());
  EXPECT_TRUE(ProcessesOf(controller_).empty());
}

}  // namespace
}  // namespace muster::testing
