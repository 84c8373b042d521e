#include "controller/logs/layout.h"

#include <gtest/gtest.h>

namespace muster::logs {
namespace {

TEST(LayoutTest, NamesEveryStream) {
  EXPECT_EQ(LogName(v1::STREAM_STDOUT), "stdout.log");
  EXPECT_EQ(LogName(v1::STREAM_STDERR), "stderr.log");
  EXPECT_EQ(LogName(v1::STREAM_EVENTS), "events.jsonl");
  EXPECT_EQ(TimesName(v1::STREAM_STDERR), "stderr.times");
  EXPECT_EQ(StreamIndex(v1::STREAM_UNSPECIFIED), kNumStreams);
}

TEST(LayoutTest, PutsRanksBelowTheirAttempt) {
  EXPECT_EQ(RankDir("/o", 2, 17), "/o/ranks/attempt_2/17");
}

TEST(LayoutTest, MergedFileHasNodeAndHost) {
  v1::Plan plan;
  plan.set_name("tp1_pp1");
  plan.add_nodes()->mutable_host()->set_host("a");
  plan.add_nodes()->mutable_host()->set_host("b");
  EXPECT_EQ(MergedPath("/o", plan, 1, 0), "/o/tp1_pp1.log.1.b");
  EXPECT_EQ(MergedPath("/o", plan, 1, 3), "/o/tp1_pp1.log.1.b.attempt_3");
}

TEST(LayoutTest, SlashesStayInsideOneName) {
  v1::Plan plan;
  plan.set_name("../x/y");
  plan.add_nodes()->mutable_host()->set_host("h/i");
  EXPECT_EQ(MergedPath("/o", plan, 0, 0), "/o/.._x_y.log.0.h_i");
  EXPECT_EQ(TorchrunDir("/o", "../r", "h", 0), "/o/.._r_h/attempt_0");
}

TEST(LayoutTest, WidthHoldsTheLargestRank) {
  EXPECT_EQ(RankWidth(0), 1);
  EXPECT_EQ(RankWidth(10), 1);
  EXPECT_EQ(RankWidth(11), 2);
  EXPECT_EQ(RankWidth(2048), 4);
}

}  // namespace
}  // namespace muster::logs
