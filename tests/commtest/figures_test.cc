#include <gtest/gtest.h>

#include "trainer/commtest/collective.h"

namespace muster::commtest {
namespace {

// nccl-tests' doc/PERFORMANCE.md.
TEST(Figures, BusBandwidthFactors) {
  constexpr int64_t kBytes = 1'000'000;
  EXPECT_DOUBLE_EQ(AlgorithmBandwidth(kBytes, 0.001), 1e9);
  EXPECT_DOUBLE_EQ(BusBandwidth(Collective::kAllReduce, kBytes, 0.001, 8), 1e9 * 14 / 8);
  EXPECT_DOUBLE_EQ(BusBandwidth(Collective::kAllGather, kBytes, 0.001, 8), 1e9 * 7 / 8);
  EXPECT_DOUBLE_EQ(BusBandwidth(Collective::kReduceScatter, kBytes, 0.001, 8), 1e9 * 7 / 8);
  EXPECT_DOUBLE_EQ(BusBandwidth(Collective::kBroadcast, kBytes, 0.001, 8), 1e9);
  EXPECT_DOUBLE_EQ(BusBandwidth(Collective::kSendReceive, kBytes, 0.001, 8), 1e9);
  EXPECT_EQ(AlgorithmBandwidth(kBytes, 0), 0);
}

TEST(Figures, ShapesAreNcclTests) {
  const Shape reduce = ShapeOf(Collective::kAllReduce, Type::kFloat, 1024, 4);
  EXPECT_EQ(reduce.count, 256);
  EXPECT_EQ(reduce.bytes, 1024);
  const Shape gather = ShapeOf(Collective::kAllGather, Type::kFloat, 1024, 4);
  EXPECT_EQ(gather.count, 64);
  EXPECT_EQ(gather.sent, 64);
  EXPECT_EQ(gather.received, 256);
  EXPECT_EQ(gather.bytes, 1024);
  const Shape scatter = ShapeOf(Collective::kReduceScatter, Type::kDouble, 1024, 4);
  EXPECT_EQ(scatter.count, 32);
  EXPECT_EQ(scatter.sent, 128);
  EXPECT_EQ(scatter.received, 32);
  // Sizes that the ranks do not divide are rounded down, to one element at least.
  EXPECT_EQ(ShapeOf(Collective::kAllGather, Type::kFloat, 1024, 3).bytes, 1020);
  EXPECT_EQ(ShapeOf(Collective::kAllGather, Type::kFloat, 8, 5).bytes, 20);
  EXPECT_EQ(ShapeOf(Collective::kAllReduce, Type::kInt64, 1, 5).bytes, 8);
}

}  // namespace
}  // namespace muster::commtest
