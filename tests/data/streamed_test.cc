// The streamed order: a permutation that is computed, every sample once, resumed anywhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "tests/data/tokens.h"
#include "trainer/data/dataset.h"
#include "trainer/data/periodic_blend.h"
#include "trainer/data/permutation.h"
#include "trainer/data/sharding.h"
#include "trainer/data/streamed_source.h"

namespace muster::data {
namespace {

std::vector<int64_t> All(const Permutation& order, int64_t size) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < size; ++i) all.push_back(order(i));
  return all;
}

TEST(Permutation, IsOneToOneForEverySize) {
  for (const int64_t size : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 100, 255, 256, 257, 1000, 4097}) {
    for (uint64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<int64_t> all = All(Permutation(size, 1234, epoch), size);
      std::sort(all.begin(), all.end());
      for (int64_t i = 0; i < size; ++i) ASSERT_EQ(all[static_cast<size_t>(i)], i) << size;
    }
  }
}

TEST(Permutation, LargeSizesStayInside) {
  for (const int64_t size : {int64_t{1} << 31, int64_t{1'953'125'000}, (int64_t{1} << 40) + 1}) {
    const Permutation order(size, 5, 7);
    for (int64_t i = 0; i < 1000; ++i) {
      const int64_t image = order(size - 1 - i * 1000);
      EXPECT_GE(image, 0);
      EXPECT_LT(image, size);
    }
  }
}

// The order is a contract: checkpoints rely on it.
TEST(Permutation, NeverChanges) {
  EXPECT_THAT(All(Permutation(10, 1234, 0), 10),
              ::testing::ElementsAre(1, 4, 6, 2, 8, 5, 0, 7, 3, 9));
  EXPECT_THAT(All(Permutation(10, 1234, 1), 10),
              ::testing::ElementsAre(8, 9, 2, 0, 5, 4, 6, 1, 7, 3));
  EXPECT_EQ(Permutation(1'953'125'000, 1234, 3)(1'000'000'000), 1883199709);
}

TEST(Permutation, SeedsAndEpochsDiffer) {
  constexpr int64_t kSize = 1000;
  std::vector<std::vector<int64_t>> orders;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    for (uint64_t epoch = 0; epoch < 4; ++epoch) {
      orders.push_back(All(Permutation(kSize, seed, epoch), kSize));
    }
  }
  for (size_t a = 0; a < orders.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      int same = 0;
      for (size_t i = 0; i < kSize; ++i) same += orders[a][i] == orders[b][i];
      // One fixed point is expected of two random orders; 12 has a probability below 1e-9.
      EXPECT_LT(same, 12) << a << " " << b;
    }
  }
}

// Chi-squared over (place, image) cells, many epochs.
TEST(Permutation, ImagesAreSpreadEvenly) {
  constexpr int64_t kSize = 1000, kCells = 10, kEpochs = 200;
  std::vector<double> counts(kCells * kCells, 0);
  double neighbours = 0;
  for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const std::vector<int64_t> all = All(Permutation(kSize, 99, epoch), kSize);
    for (int64_t i = 0; i < kSize; ++i) {
      const int64_t image = all[static_cast<size_t>(i)];
      ++counts[static_cast<size_t>(i * kCells / kSize * kCells + image * kCells / kSize)];
      neighbours += i > 0 && image == all[static_cast<size_t>(i - 1)] + 1;
    }
  }
  const double expected = static_cast<double>(kSize * kEpochs) / counts.size();
  double chi2 = 0;
  for (const double count : counts) chi2 += (count - expected) * (count - expected) / expected;
  // 81 degrees of freedom: mean 81, standard deviation 12.7; fixed inputs, so this never flakes.
  EXPECT_LT(chi2, 81 + 5 * 12.7);
  EXPECT_GT(chi2, 81 - 5 * 12.7);
  // Pairs that keep their order side by side: one an epoch is expected.
  EXPECT_LT(neighbours, 300);
}

class StreamedTest : public testing::TokensTest {
 protected:
  StreamedTest() {
    config_.index_order = IndexOrder::kStreamed;
    config_.seq_length = 4;
  }
  // The first token of each of the first `count` samples: tokens count up, so it names the window.
  std::vector<int64_t> FirstTokens(const SampleSource& source, int64_t count) {
    std::vector<int64_t> first;
    for (int64_t i = 0; i < count; ++i) first.push_back(Tokens(source, i).front());
    return first;
  }
};

TEST_F(StreamedTest, EachEpochGivesEachSampleOnceInAnotherOrder) {
  Write({7, 0, 20, 1, 0, 30, 3});  // 61 tokens: 15 samples
  config_.train_samples = 45;
  const Datasets built = BuildDatasets(config_);
  ASSERT_EQ(built.train->size(), 45);
  const std::vector<int64_t> first = FirstTokens(*built.train, 45);
  std::vector<std::vector<int64_t>> epochs;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    epochs.emplace_back(first.begin() + epoch * 15, first.begin() + (epoch + 1) * 15);
    std::vector<int64_t> sorted = epochs.back();
    std::sort(sorted.begin(), sorted.end());
    for (int64_t i = 0; i < 15; ++i) EXPECT_EQ(sorted[static_cast<size_t>(i)], 4 * i);
    EXPECT_NE(sorted, epochs.back());
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
}

TEST_F(StreamedTest, SamplesAreWindowsOfTheFile) {
  Write({7, 0, 20, 1, 0, 30, 3});
  config_.train_samples = 15;
  const Datasets built = BuildDatasets(config_);
  for (int64_t i = 0; i < 15; ++i) {
    const std::vector<int64_t> tokens = Tokens(*built.train, i);
    for (size_t k = 1; k < tokens.size(); ++k) EXPECT_EQ(tokens[k], tokens[k - 1] + 1);
  }
}

TEST_F(StreamedTest, AnyNumberOfRanksSeesEverySampleOnceAnEpochAndResumesAnywhere) {
  Write({50, 11});
  config_.train_samples = 60;  // 4 epochs
  const Datasets built = BuildDatasets(config_);
  const std::vector<int64_t> whole = FirstTokens(*built.train, 60);
  for (const int64_t dp : {1, 2, 3, 5}) {
    // A run that stops after 15 samples and goes on anew from those consumed.
    std::vector<int64_t> seen;
    for (const int64_t consumed : {0, 15}) {
      const Datasets again = BuildDatasets(config_);
      for (int64_t micro_batch = 0; micro_batch < 15 / dp; ++micro_batch) {
        for (int64_t rank = 0; rank < dp; ++rank) {
          const int64_t sample = Shard{1, dp, rank}.FirstSample(consumed, micro_batch);
          seen.push_back(Tokens(*again.train, sample).front());
        }
      }
    }
    if (15 % dp == 0) {
      EXPECT_EQ(seen, std::vector<int64_t>(whole.begin(), whole.begin() + 30)) << dp;
    } else {
      EXPECT_EQ(seen.size(), static_cast<size_t>(15 / dp * dp * 2)) << dp;
    }
  }
}

TEST_F(StreamedTest, TwoBillionSamplesOfMockDataTakeNoMemoryWorthNaming) {
  config_.mock_data = true;
  config_.vocab_size = 1000;
  config_.eod = 999;
  config_.seq_length = 8192;
  config_.train_samples = 1'953'125'000;
  config_.valid_samples = 625'000'000;
  config_.test_samples = 4096;
  config_.index_memory = 0;
  const Datasets built = BuildDatasets(config_);
  ASSERT_EQ(built.train->size(), 1'953'125'000);
  const auto& train = dynamic_cast<const StreamedSource&>(*built.train);
  EXPECT_EQ(train.epoch_samples(), 8324) << "68,190,290 tokens of the first third";
  const std::vector<int64_t> last = Tokens(*built.train, built.train->size() - 1);
  EXPECT_TRUE(std::all_of(last.begin(), last.end(), [](int64_t t) { return t < 1000; }));
}

TEST(PeriodicBlend, CountsFollowTheWeightsInEveryStretch) {
  const std::vector<double> weights = {0.5, 0.3, 0.1999, 0.0001};
  const PeriodicBlend blend(weights);
  constexpr int64_t kDraws = 3'000'000;  // almost three periods
  std::vector<int64_t> given(weights.size(), 0);
  for (int64_t i = 0; i < kDraws; ++i) {
    const PeriodicBlend::Draw draw = blend(i);
    const auto d = static_cast<size_t>(draw.dataset);
    ASSERT_EQ(draw.sample, given[d]) << "each data set's samples come in order, none twice";
    ++given[d];
    if (i % 1000 != 0) continue;
    for (size_t k = 0; k < weights.size(); ++k) {
      // Half a draw for each data set, and the rounding of the weight.
      EXPECT_NEAR(static_cast<double>(given[k]), weights[k] * static_cast<double>(i + 1), 6);
    }
  }
}

TEST(PeriodicBlend, TinyWeightsAreDrawnAndZeroIsNot) {
  const PeriodicBlend blend(std::vector<double>{1 - 1e-12, 1e-12, 0});
  std::map<int64_t, int64_t> count;
  for (int64_t i = 0; i < 1'100'000; ++i) ++count[blend(i).dataset];
  EXPECT_GE(count[1], 1);
  EXPECT_LE(count[1], 2);
  EXPECT_EQ(count.count(2), 0U);
}

TEST_F(StreamedTest, BlendsDrawInTheirShares) {
  Write({200}, "a");
  Write({400}, "b");
  config_.paths.data_path = {"25", Prefix("a"), "75", Prefix("b")};
  config_.vocab_size = 0;
  config_.train_samples = 4000;
  const Datasets built = BuildDatasets(config_);
  ASSERT_EQ(built.train->size(), 4000);
  std::map<size_t, int> from;
  for (int64_t i = 0; i < 400; ++i) ++from[Tokens(*built.train, i).front() >= 200 ? 1 : 0];
  EXPECT_GT(from[1], 100) << "half of b's samples lie above a's tokens";
  // One epoch of each, in proportion to their lengths.
  config_.paths.data_path = {Prefix("a"), Prefix("b")};
  EXPECT_EQ(BuildDatasets(config_).train->size(), 199 / 4 + 399 / 4);
}

}  // namespace
}  // namespace muster::data
