#include "controller/stage/relay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace muster::stage {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

StageRun MakeRun(size_t nodes, uint32_t pieces = 600) {
  StageRun run;
  run.pieces = pieces;
  run.nodes.resize(nodes);
  for (size_t i = 0; i < nodes; ++i) {
    StageNode& node = run.nodes[i];
    node.host.set_host("n" + std::to_string(i));
    node.ready = true;
    node.port = 1000 + static_cast<uint32_t>(i);
    node.status.set_state(v1::STAGE_STATE_FETCHING);
  }
  return run;
}

int FedByController(const StageRun& run) {
  return static_cast<int>(
      std::count_if(run.nodes.begin(), run.nodes.end(),
                    [](const StageNode& node) { return node.source == kController; }));
}

// Whether all bytes come from the controller in the end.
void ExpectNoCycle(const StageRun& run) {
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    int at = static_cast<int>(i);
    size_t steps = 0;
    while (at >= 0 && run.nodes[static_cast<size_t>(at)].status.pieces() < run.pieces &&
           steps <= run.nodes.size()) {
      at = run.nodes[static_cast<size_t>(at)].source;
      ++steps;
    }
    ASSERT_LE(steps, run.nodes.size()) << "node " << i << " gets its bytes from itself";
  }
}

TEST(Relay, TheControllerFeedsTwoAndTheTreeIsShallow) {
  StageRun run = MakeRun(32);
  EXPECT_EQ(AssignSources(run, 0).size(), 32u);
  EXPECT_EQ(FedByController(run), 2);
  ExpectNoCycle(run);
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    const auto children =
        std::count_if(run.nodes.begin(), run.nodes.end(),
                      [&](const StageNode& node) { return node.source == static_cast<int>(i); });
    EXPECT_LE(children, 2);
  }
  EXPECT_TRUE(AssignSources(run, 0).empty());
}

TEST(Relay, OneThatHasAllFeedsALateComerInsteadOfTheController) {
  StageRun run = MakeRun(4);
  run.nodes[3].ready = false;
  AssignSources(run, 0);
  for (size_t i = 0; i < 3; ++i) {
    run.nodes[i].status.set_pieces(run.pieces);
    run.nodes[i].status.set_state(v1::STAGE_STATE_DONE);
  }
  run.nodes[3].ready = true;
  ASSERT_EQ(AssignSources(run, 0), std::vector<size_t>{3});
  EXPECT_GE(run.nodes[3].source, 0);
}

TEST(Relay, WhoReachesNobodyIsFedByTheController) {
  StageRun run = MakeRun(5);
  AssignSources(run, 0);
  ASSERT_GE(run.nodes[4].source, 0);
  for (int i = 0; i < 4; ++i) {
    BanSource(run, 4);
    AssignSources(run, 0);
  }
  EXPECT_EQ(run.nodes[4].source, kController);
  EXPECT_TRUE(ThroughController(run, 4));
  EXPECT_FALSE(ThroughController(run, 0));
}

TEST(Relay, NodesWithoutAListenerFeedNobody) {
  StageRun run = MakeRun(6);
  run.nodes[0].port = 0;
  run.nodes[1].port = 0;
  AssignSources(run, 0);
  for (const StageNode& node : run.nodes) EXPECT_NE(node.source, 0);
  ExpectNoCycle(run);
}

TEST(Relay, AChildOfASlowNodeMovesAndTheSlowOneDelaysOnlyItself) {
  StageRun run = MakeRun(8);
  AssignSources(run, 0);
  // Node 0 and all below it get little; node 1's side is far ahead.
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    int at = static_cast<int>(i);
    while (run.nodes[static_cast<size_t>(at)].source >= 0)
      at = run.nodes[static_cast<size_t>(at)].source;
    run.nodes[i].status.set_pieces(at == 0 ? 10 : 200);
  }
  ReplanSlow(run, 4 * kSecond);
  AssignSources(run, 4 * kSecond);
  EXPECT_TRUE(run.nodes[0].slow);
  for (const StageNode& node : run.nodes) EXPECT_NE(node.source, 0);
  ExpectNoCycle(run);
}

TEST(Relay, ASlowLinkToTheControllerIsLeftOnlyForAnotherWay) {
  StageRun run = MakeRun(2);
  AssignSources(run, 0);
  run.nodes[0].status.set_pieces(run.pieces);
  run.nodes[0].status.set_state(v1::STAGE_STATE_DONE);
  StageNode& slow = run.nodes[1];
  slow.status.set_pieces(10);
  slow.source = kController;
  slow.banned = {0};  // a firewall stands between the two
  for (const int64_t now : {4 * kSecond, 8 * kSecond, 12 * kSecond}) {
    ReplanSlow(run, now);
    EXPECT_TRUE(AssignSources(run, now).empty()) << now;
    EXPECT_EQ(slow.source, kController);
  }
  slow.banned.clear();
  ReplanSlow(run, 16 * kSecond);
  EXPECT_EQ(AssignSources(run, 16 * kSecond), std::vector<size_t>{1});
  EXPECT_EQ(slow.source, 0);
}

TEST(Relay, AStalledChildTriesAnotherSource) {
  StageRun run = MakeRun(6);
  AssignSources(run, 0);
  StageNode& child = run.nodes[5];
  const int before = child.source;
  for (StageNode& node : run.nodes) node.status.set_pieces(20);
  child.status.set_pieces(19);
  for (StageNode& node : run.nodes) node.progress_ns = 20 * kSecond;
  child.progress_ns = 0;
  ReplanSlow(run, 20 * kSecond);
  AssignSources(run, 20 * kSecond);
  EXPECT_NE(child.source, before);
}

// Whatever happens, there is never a cycle, nobody waits without a source, and with all hosts well
// the controller feeds two.
TEST(Relay, HoldsUnderRandomEvents) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    StageRun run = MakeRun(2 + random() % 30);
    for (StageNode& node : run.nodes) node.ready = random() % 2 == 0;
    int64_t now = 0;
    for (int step = 0; step < 60; ++step) {
      now += kSecond / 4;
      StageNode& node = run.nodes[random() % run.nodes.size()];
      switch (random() % 6) {
        case 0:
          node.ready = true;
          node.source = kNoSource;
          break;
        case 1:
          node.ready = false;
          break;
        case 2:
          BanSource(run, static_cast<size_t>(&node - run.nodes.data()));
          break;
        case 3:
          node.status.set_state(v1::STAGE_STATE_FAILED);
          break;
        default:
          node.status.set_pieces(std::min<uint32_t>(
              run.pieces, node.status.pieces() + static_cast<uint32_t>(random() % 200)));
      }
      ReplanSlow(run, now);
      AssignSources(run, now);
      ExpectNoCycle(run);
      for (const StageNode& one : run.nodes) {
        EXPECT_TRUE(!one.ready || one.ended() || one.source != kNoSource);
      }
    }
  }
}

}  // namespace
}  // namespace muster::stage
