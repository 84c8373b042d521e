#include "trainer/commtest/outliers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace muster::commtest {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// All pairs of `places` with about the same figures.
std::vector<PairRow> Even(int64_t places, double jitter = 0.3) {
  std::mt19937_64 random(static_cast<uint64_t>(places));
  std::uniform_real_distribution<double> noise(1, 1 + jitter);
  std::vector<PairRow> rows;
  for (const auto& round : PairRounds(places)) {
    for (const auto& [a, b] : round) {
      PairRow row{.a = a, .b = b};
      row.latency = row.median_latency = 100e-6 * noise(random);
      row.bandwidth = 1e9 / noise(random);
      rows.push_back(row);
    }
  }
  return rows;
}

PairRow& Find(std::vector<PairRow>& rows, int64_t a, int64_t b) {
  return *std::find_if(rows.begin(), rows.end(),
                       [&](const PairRow& row) { return row.a == a && row.b == b; });
}

TEST(Outliers, EvenPairsAreAllUsual) {
  for (const int64_t places : {2, 3, 4, 5, 16, 17, 40}) {
    const Oddities odd = FindOddities(Even(places), places);
    EXPECT_THAT(odd.pairs, IsEmpty()) << places;
    EXPECT_THAT(odd.places, IsEmpty()) << places;
  }
}

TEST(Outliers, ASlowHostExplainsItsPairs) {
  for (const int64_t places : {3, 4, 5, 9, 40}) {
    std::vector<PairRow> rows = Even(places);
    size_t slow = 0;
    for (PairRow& row : rows) {
      if (row.a != 1 && row.b != 1) continue;
      row.latency += 0.04;
      ++slow;
    }
    const Oddities odd = FindOddities(rows, places);
    EXPECT_EQ(odd.pairs.size(), slow) << places;
    EXPECT_THAT(odd.places, ElementsAre(1)) << places;
    EXPECT_TRUE(odd.pairs[0].slow_latency);
    EXPECT_FALSE(odd.pairs[0].slow_bandwidth);
    EXPECT_LT(odd.usual_latency, 200e-6);
  }
}

TEST(Outliers, ASlowPairIsNotAHost) {
  for (const int64_t places : {3, 4, 16, 40}) {
    std::vector<PairRow> rows = Even(places);
    Find(rows, 0, 2).bandwidth = 1e8;
    const Oddities odd = FindOddities(rows, places);
    ASSERT_EQ(odd.pairs.size(), 1u) << places;
    EXPECT_EQ(rows[odd.pairs[0].row].b, 2);
    EXPECT_TRUE(odd.pairs[0].slow_bandwidth);
    EXPECT_FALSE(odd.pairs[0].slow_latency);
    EXPECT_THAT(odd.places, IsEmpty()) << places;
  }
}

// Best far from median: a busy machine, not a slow way.
TEST(Outliers, AScatteredLatencyIsNotOdd) {
  std::vector<PairRow> rows = Even(4);
  Find(rows, 0, 1).latency = 500e-6;
  Find(rows, 0, 1).median_latency = 900e-6;
  EXPECT_THAT(FindOddities(rows, 4).pairs, IsEmpty());
  Find(rows, 0, 1).median_latency = 520e-6;
  EXPECT_EQ(FindOddities(rows, 4).pairs.size(), 1u);
}

TEST(Outliers, TwoHostsHaveNothingToCompareWith) {
  std::vector<PairRow> rows = Even(2);
  rows[0].latency = 10;
  EXPECT_THAT(FindOddities(rows, 2).pairs, IsEmpty());
  EXPECT_THAT(FindOddities({}, 1).pairs, IsEmpty());
}

}  // namespace
}  // namespace muster::commtest
