#include "trainer/commtest/pairs.h"

#include <gtest/gtest.h>

#include <set>

namespace muster::commtest {
namespace {

TEST(Places, TheFirstRankOfEachHost) {
  const auto places = PlacesOf({"b", "b", "a", "a", "c"});
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(places[0].name, "b");
  EXPECT_EQ(places[1].name, "a");
  EXPECT_EQ(places[1].rank, 2);
  EXPECT_EQ(places[2].rank, 4);
}

TEST(Places, TheRanksOfASingleHost) {
  const auto places = PlacesOf({"n", "n"});
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(places[1].name, "n rank 1");
  EXPECT_EQ(places[1].rank, 1);
}

TEST(PairRounds, EachPairOnceAndNobodyTwiceInARound) {
  for (int64_t n = 1; n <= 40; ++n) {
    std::set<PairIndex> seen;
    for (const auto& round : PairRounds(n)) {
      std::set<int64_t> busy;
      for (const auto& [a, b] : round) {
        EXPECT_LT(a, b);
        EXPECT_TRUE(busy.insert(a).second && busy.insert(b).second) << n;
        EXPECT_TRUE(seen.insert({a, b}).second) << n;
        EXPECT_LT(b, n);
      }
    }
    EXPECT_EQ(seen.size(), static_cast<size_t>(n * (n - 1) / 2)) << n;
  }
  EXPECT_EQ(PairRounds(16).size(), 120u) << "one pair at a time";
  EXPECT_EQ(PairRounds(40).size(), 39u) << "20 pairs at a time";
}

}  // namespace
}  // namespace muster::commtest
