#include "trainer/parallel/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace muster::parallel {
namespace {

using ::testing::ElementsAre;

constexpr ParallelSizes kSizes = {.tensor = 2, .context = 2, .data = 3, .pipeline = 2};

TEST(Topology, TensorIsFastestAndPipelineSlowest) {
  EXPECT_EQ(RankOf(kSizes, {.tensor = 1}), 1);
  EXPECT_EQ(RankOf(kSizes, {.context = 1}), 2);
  EXPECT_EQ(RankOf(kSizes, {.data = 1}), 4);
  EXPECT_EQ(RankOf(kSizes, {.pipeline = 1}), 12);
  EXPECT_EQ(RankOf(kSizes, {1, 1, 2, 1}), 23);
}

TEST(Topology, CoordinateIsTheInverse) {
  for (int64_t rank = 0; rank < kSizes.world(); ++rank) {
    EXPECT_EQ(RankOf(kSizes, CoordinateOf(kSizes, rank)), rank);
  }
}

TEST(Topology, Groups) {
  EXPECT_THAT(GroupOf(kSizes, {.tensor = true}, 5), ElementsAre(4, 5));
  EXPECT_THAT(GroupOf(kSizes, {.context = true}, 5), ElementsAre(5, 7));
  EXPECT_THAT(GroupOf(kSizes, {.data = true}, 5), ElementsAre(1, 5, 9));
  EXPECT_THAT(GroupOf(kSizes, {.pipeline = true}, 5), ElementsAre(5, 17));
  EXPECT_THAT(GroupOf(kSizes, kDataContextGroup, 0), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_EQ(GroupOf(kSizes, kAmaxGroup, 13).size(), 12u);
}

TEST(Topology, GroupsOfOneKindPartitionTheWorld) {
  for (const GroupDims dims :
       {GroupDims{.tensor = true}, GroupDims{.context = true}, GroupDims{.data = true},
        GroupDims{.pipeline = true}, kDataContextGroup, kAmaxGroup}) {
    std::multiset<int64_t> seen;
    std::set<std::vector<int64_t>> groups;
    for (int64_t rank = 0; rank < kSizes.world(); ++rank)
      groups.insert(GroupOf(kSizes, dims, rank));
    for (const auto& group : groups) seen.insert(group.begin(), group.end());
    EXPECT_EQ(seen.size(), static_cast<size_t>(kSizes.world()));
    EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), seen.size());
  }
}

}  // namespace
}  // namespace muster::parallel
