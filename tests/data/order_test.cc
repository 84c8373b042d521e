// Data orders, splits, sharding, and what BuildDatasets refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/data/golden.h"
#include "trainer/data/blend.h"
#include "trainer/data/data_error.h"
#include "trainer/data/dataset.h"
#include "trainer/data/indexed_writer.h"
#include "trainer/data/sharding.h"
#include "trainer/data/split.h"

namespace muster::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OrderTest : public ::testing::Test {
 protected:
  // Documents of the given lengths; tokens count up from 0 through all of them.
  void Write(const std::vector<int32_t>& lengths) {
    IndexedWriter writer(prefix_, TokenType::kUint16);
    std::vector<uint16_t> tokens(
        static_cast<size_t>(std::accumulate(lengths.begin(), lengths.end(), 0)));
    std::iota(tokens.begin(), tokens.end(), uint16_t{0});
    const std::vector<int32_t> ones(lengths.size(), 1);
    writer.Append({reinterpret_cast<const uint8_t*>(tokens.data()), tokens.size() * 2}, lengths,
                  ones);
    writer.Finish();
    config_.paths.data_path = {prefix_};
    config_.split = "1";
  }

  std::vector<int64_t> Tokens(const SampleSource& source, int64_t index) {
    std::vector<int64_t> tokens(static_cast<size_t>(source.seq_length()) + 1);
    mask_.resize(tokens.size() - 1);
    source.Get(index, tokens, mask_);
    return tokens;
  }

  std::string Error() const {
    try {
      BuildDatasets(config_);
    } catch (const DataError& error) {
      return error.what();
    }
    return "(no DataError)";
  }

  testing::TempFolder folder_;
  std::string prefix_ = (folder_.path() / "x").string();
  DataConfig config_;
  std::vector<float> mask_;
};

TEST_F(OrderTest, SequentialCutsTheFileInOrder) {
  Write({3, 4, 1, 5});
  config_.order = DataOrder::kSequential;
  config_.seq_length = 4;
  config_.train_samples = 5;
  const Datasets built = BuildDatasets(config_);
  ASSERT_EQ(built.train->size(), 5);
  EXPECT_THAT(Tokens(*built.train, 0), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(Tokens(*built.train, 1), ElementsAre(4, 5, 6, 7, 8));
  EXPECT_THAT(Tokens(*built.train, 2), ElementsAre(8, 9, 10, 11, 12));
  EXPECT_THAT(Tokens(*built.train, 3), ElementsAre(0, 1, 2, 3, 4)) << "starts again";
  EXPECT_EQ(built.valid, nullptr);
}

TEST_F(OrderTest, DocumentCutsAndPads) {
  Write({3, 7, 1});
  config_.order = DataOrder::kDocument;
  config_.seq_length = 4;
  config_.train_samples = std::nullopt;
  const Datasets built = BuildDatasets(config_);
  ASSERT_EQ(built.train->size(), 3);
  EXPECT_THAT(Tokens(*built.train, 0), ElementsAre(0, 1, 2, 0, 0));
  EXPECT_THAT(mask_, ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(Tokens(*built.train, 1), ElementsAre(3, 4, 5, 6, 7));
  EXPECT_THAT(mask_, ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(Tokens(*built.train, 2), ElementsAre(10, 0, 0, 0, 0));
  EXPECT_THAT(mask_, ElementsAre(0, 0, 0, 0));
}

TEST_F(OrderTest, EodMasksTheLossAfterIt) {
  Write({5});
  config_.order = DataOrder::kSequential;
  config_.seq_length = 4;
  config_.train_samples = 1;
  config_.eod = 2;
  config_.eod_mask_loss = true;
  const Datasets built = BuildDatasets(config_);
  Tokens(*built.train, 0);
  EXPECT_THAT(mask_, ElementsAre(1, 1, 0, 1));
}

TEST_F(OrderTest, ATokenBeyondTheVocabularyIsNamed) {
  Write({5, 5});
  config_.seq_length = 4;
  config_.train_samples = 2;
  config_.vocab_size = 7;
  const Datasets built = BuildDatasets(config_);
  try {
    for (int64_t i = 0; i < built.train->size(); ++i) Tokens(*built.train, i);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("x.bin, offset 14 (sequence 1, token 2): token 7 is not "
                                        "below the vocabulary size 7"));
  }
}

TEST_F(OrderTest, RefusalsNameTheCause) {
  Write({5, 5});
  config_.seq_length = 4;
  config_.train_samples = 1;
  config_.split = "0,1,0";
  EXPECT_EQ(BuildDatasets(config_).train, nullptr) << "a split of weight zero is absent";
  config_.split = "1,99,0";
  EXPECT_THAT(Error(), HasSubstr("the train split is empty"));
  config_.split = "1,2,3,4";
  EXPECT_THAT(Error(), HasSubstr("--split '1,2,3,4' needs one to three numbers"));
  config_.split = "none";
  EXPECT_THAT(Error(), HasSubstr("--split 'none'"));
  config_.split = "1";
  config_.seq_length = 64;
  config_.order = DataOrder::kSequential;
  EXPECT_THAT(Error(), HasSubstr("the split holds 10 tokens; one sample needs 65"));
  config_.order = DataOrder::kShuffled;
  config_.index_memory = 4;
  EXPECT_THAT(Error(), HasSubstr("--index-order streamed"));
  config_.paths.data_path = {"0.5", prefix_, "many", prefix_};
  EXPECT_THAT(Error(), HasSubstr("'many' stands where a weight is expected"));
  config_.paths.data_path.clear();
  EXPECT_THAT(Error(), HasSubstr("no data"));
}

TEST(SplitRanges, RoundsHalvesToEven) {
  const auto ranges = SplitRanges("50,50", 5);
  EXPECT_EQ(ranges[0]->end, 2);
  EXPECT_EQ(ranges[1]->end, 5);
  EXPECT_FALSE(ranges[2].has_value());
  EXPECT_EQ(SplitRanges("'99,1,0'", 1000)[0]->end, 990) << "quotes do no harm";
}

TEST(ParseBlend, TellsWeightsFromPrefixes) {
  EXPECT_FALSE(ParseBlend({"a"}).weights.has_value());
  EXPECT_FALSE(ParseBlend({"a", "b"}).weights.has_value());
  EXPECT_THAT(*ParseBlend({"1", "a", "3e1", "b"}).weights, ElementsAre(1, 30));
  EXPECT_THAT(ParseBlend({"1", "a", "3", "b"}).prefixes, ElementsAre("a", "b"));
}

TEST(Shard, EveryRankTogetherTakesEverySampleOnceInOrder) {
  for (const int64_t dp : {1, 2, 3, 8}) {
    for (const int64_t mbs : {1, 2, 5}) {
      std::vector<int64_t> seen;
      for (int64_t micro_batch = 0; micro_batch < 4; ++micro_batch) {
        for (int64_t rank = 0; rank < dp; ++rank) {
          const int64_t first = Shard{mbs, dp, rank}.FirstSample(100, micro_batch);
          for (int64_t i = 0; i < mbs; ++i) seen.push_back(first + i);
        }
      }
      std::vector<int64_t> want(static_cast<size_t>(4 * dp * mbs));
      std::iota(want.begin(), want.end(), 100);
      EXPECT_EQ(seen, want) << dp << " " << mbs;
    }
  }
}

}  // namespace
}  // namespace muster::data
