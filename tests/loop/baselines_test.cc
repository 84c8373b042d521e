#include "trainer/loop/baselines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace muster::loop {
namespace {

using ::testing::HasSubstr;

// Sample k holds tokens k, k+1, ..; the last label of each sample does not count.
class Counting : public data::SampleSource {
 public:
  int64_t size() const override { return 2; }
  int64_t seq_length() const override { return 3; }
  void Read(int64_t index, data::Sample& sample) const override {
    for (size_t i = 0; i < sample.tokens.size(); ++i) {
      sample.tokens[i] = index + static_cast<int64_t>(i);
    }
    sample.uncounted = {static_cast<int32_t>(seq_length()) - 1};
  }
};

TEST(Entropy, OfCounts) {
  EXPECT_EQ(EntropyOfCounts({}).nats_per_token, 0);
  EXPECT_EQ(EntropyOfCounts({0, 7}).nats_per_token, 0);
  EXPECT_NEAR(EntropyOfCounts({5, 5, 0, 5, 5}).nats_per_token, std::log(4.0), 1e-12);
  EXPECT_EQ(EntropyOfCounts({1, 2}).tokens, 3);
}

TEST(Entropy, OfTheLabelsThatCount) {
  // Labels 1, 2 and 2, 3.
  const UnigramEntropy entropy = EntropyOfLabels(Counting(), 8);
  EXPECT_EQ(entropy.tokens, 4);
  EXPECT_NEAR(entropy.nats_per_token, 1.5 * std::log(2.0), 1e-12);
}

TEST(Baselines, SaysBelowOrNot) {
  EXPECT_THAT(BaselineLines(9.1, 8192, 5.0, {6.0, 100}),
              HasSubstr("first loss 9.1000 | ln(V) 9.0109 with V = 8192 | difference +0.99 %"));
  EXPECT_THAT(BaselineLines(9.1, 8192, 5.0, {6.0, 100}),
              HasSubstr("6.0000 nats/token (100 tokens) | below\n"));
  EXPECT_THAT(BaselineLines({}, 8192, 6.5, {6.0, 100}), HasSubstr("| NOT below\n"));
  EXPECT_EQ(BaselineLines({}, 8192, {}, {}), "");
}

}  // namespace
}  // namespace muster::loop
