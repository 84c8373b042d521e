#include "trainer/tools/length_histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace muster::tools {
namespace {

using ::testing::HasSubstr;

TEST(LengthHistogram, QuantilesAreExact) {
  std::mt19937_64 random(3);
  LengthHistogram histogram;
  std::vector<int64_t> lengths;
  for (int i = 0; i < 2000; ++i) {
    // Some beyond the lengths that are counted one by one.
    lengths.push_back(static_cast<int64_t>(random() >> (40 + random() % 24)));
    histogram.Add(lengths.back());
  }
  std::sort(lengths.begin(), lengths.end());
  for (const double q : {0.0, 0.001, 0.25, 0.5, 0.9, 0.999, 1.0}) {
    const auto rank = static_cast<size_t>(std::max(1.0, std::ceil(q * 2000)));
    EXPECT_EQ(histogram.Quantile(q), lengths[rank - 1]) << q;
  }
  int64_t count = 0;
  int64_t total = 0;
  for (const auto& bin : histogram.Bins()) {
    const auto inside = [&bin](int64_t n) { return n >= bin.low && n <= bin.high; };
    EXPECT_EQ(bin.count, std::count_if(lengths.begin(), lengths.end(), inside));
    count += bin.count;
    total += bin.total;
  }
  EXPECT_EQ(count, histogram.count());
  EXPECT_EQ(total, histogram.total());
}

TEST(LengthHistogram, Nothing) {
  const LengthHistogram histogram;
  EXPECT_EQ(histogram.Quantile(0.5), 0);
  EXPECT_EQ(histogram.mean(), 0);
  EXPECT_TRUE(histogram.Bins().empty());
  EXPECT_THAT(HistogramSvg({}, "t", "documents"), HasSubstr("</svg>"));
}

TEST(HistogramText, BarsArePartsOfTheHighest) {
  const std::string text =
      HistogramText({{1, 1, 100, 100}, {2, 3, 0, 0}, {4, 7, 1, 5}}, "documents");
  EXPECT_THAT(text, HasSubstr("100 " + std::string(50, '#') + "\n"));
  EXPECT_THAT(text, HasSubstr("0                 0\n"));
  EXPECT_THAT(text, HasSubstr(" 5 #\n"));
}

}  // namespace
}  // namespace muster::tools
