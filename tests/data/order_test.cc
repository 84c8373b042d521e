// Data orders, splits, sharding, and what BuildDatasets refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <numeric>

#include "tests/data/tokens.h"
#include "trainer/data/blend.h"
#include "trainer/data/index_budget.h"
#include "trainer/data/sharding.h"
#include "trainer/data/split.h"

namespace muster::data {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class OrderTest : public testing::TokensTest {
 protected:
  std::string prefix_ = Prefix("x");
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

// The tokens are numbered through the file; the one that is padding is so wherever it stands.
TEST_F(OrderTest, PaddingInTheTextDoesNotCountEither) {
  Write({3, 7});
  config_.order = DataOrder::kDocument;
  config_.seq_length = 4;
  config_.train_samples = std::nullopt;
  config_.pad = 2;
  const Datasets built = BuildDatasets(config_);
  EXPECT_THAT(Tokens(*built.train, 0), ElementsAre(0, 1, 0, 0, 0));
  EXPECT_THAT(mask_, ElementsAre(1, 0, 0, 0));
  config_.pad = 3;
  EXPECT_THAT(Tokens(*BuildDatasets(config_).train, 1), ElementsAre(0, 4, 5, 6, 7)) << "as input";
  EXPECT_THAT(mask_, ElementsAre(1, 1, 1, 1));
}

// The end is found before padding becomes 0, also when both are one token.
TEST_F(OrderTest, PaddingMayBeTheEndOfADocument) {
  Write({8});
  config_.order = DataOrder::kSequential;
  config_.seq_length = 6;
  config_.train_samples = 1;
  config_.eod = config_.pad = 3;
  config_.eod_mask_loss = true;
  EXPECT_THAT(Tokens(*BuildDatasets(config_).train, 0), ElementsAre(0, 1, 2, 0, 4, 5, 6));
  EXPECT_THAT(mask_, ElementsAre(1, 1, 0, 0, 1, 1));
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

// EOD at 2 and 3; documents of 4, 0 and 8 tokens.
TEST_F(OrderTest, BoundariesFollowTheRules) {
  Write({4, 0, 8});
  config_.order = DataOrder::kSequential;
  config_.seq_length = 6;
  config_.train_samples = 1;
  config_.eod = 2;
  std::vector<int64_t> tokens(7);
  Sample sample{tokens};
  const auto read = [&] { BuildDatasets(config_).train->Read(0, sample); };
  read();
  EXPECT_THAT(sample.position_starts, ElementsAre());
  EXPECT_THAT(sample.attention_starts, ElementsAre());
  config_.reset_position_ids = true;
  read();
  EXPECT_THAT(sample.position_starts, ElementsAre(3));
  EXPECT_THAT(sample.attention_starts, ElementsAre());
  config_.reset_attention_mask = true;
  read();
  EXPECT_THAT(sample.attention_starts, ElementsAre(3));
  config_.inter_document_masking = true;  // the documents themselves, whatever ends them
  read();
  EXPECT_THAT(sample.position_starts, ElementsAre(4));
  EXPECT_THAT(sample.attention_starts, ElementsAre(4));
  config_.seq_length = 4;  // the next document gives this sample nothing but a label
  tokens.resize(5);
  sample.tokens = tokens;
  read();
  EXPECT_THAT(sample.attention_starts, ElementsAre());
}

TEST_F(OrderTest, PlainReadsAndPrefetchesGiveWhatMappingGives) {
  Write({9, 1, 0, 40, 25});
  config_.seq_length = 8;
  config_.train_samples = 9;
  for (const IndexOrder order : {IndexOrder::kMegatron, IndexOrder::kStreamed}) {
    config_.index_order = order;
    config_.mmap_bin_files = true;
    const Datasets mapped = BuildDatasets(config_);
    config_.mmap_bin_files = false;
    const Datasets plain = BuildDatasets(config_);
    for (int64_t i = 0; i < 9; ++i) {
      plain.train->Prefetch(i);
      mapped.train->Prefetch(i);
      EXPECT_EQ(Tokens(*plain.train, i), Tokens(*mapped.train, i));
    }
  }
}

TEST_F(OrderTest, OneDataSetWithAWeightIsABlendUnlessItIsTheSplitsOwn) {
  Write({60});
  config_.seq_length = 4;
  config_.train_samples = 14;
  config_.paths.data_path = {"3", prefix_};
  // Built with 0.5 % more: 15 samples; 14 of them are dealt.
  EXPECT_EQ(BuildDatasets(config_).train->size(), 14);
  config_.paths.train_data_path = config_.paths.data_path;
  config_.paths.data_path.clear();
  EXPECT_EQ(BuildDatasets(config_).train->size(), 14);
}

TEST_F(OrderTest, TheIndexIsAnnouncedAndRefusedAboveTheLimit) {
  Write({60});
  std::vector<std::string> notes;
  config_.report.note = [&](const std::string& text) { notes.push_back(text); };
  config_.seq_length = 4;
  config_.train_samples = 3'000'000'000;  // 200 million epochs of one document
  EXPECT_THAT(Error(), HasSubstr("needs an index of"));
  EXPECT_THAT(Error(), HasSubstr("--index-memory allows 8.0 GiB. Give --index-memory 35GiB"));
  EXPECT_THAT(Error(), HasSubstr("--index-order streamed"));
  ASSERT_FALSE(notes.empty());
  EXPECT_THAT(notes.front(), HasSubstr("sample order: Megatron's index of 3000000"));
  config_.index_order = IndexOrder::kStreamed;
  notes.clear();
  EXPECT_EQ(BuildDatasets(config_).train->size(), 3'000'000'000);
  EXPECT_TRUE(notes.empty());
}

// Whatever is asked for, the limit on memory holds: no product runs over.
TEST_F(OrderTest, NoNumberIsTooLargeForTheLimit) {
  Write({60, 1, 1, 1});
  const std::vector<std::string> blend = {"1", prefix_, "2", prefix_};
  const std::vector<std::string> alone = {prefix_};
  config_.index_memory = std::numeric_limits<int64_t>::max();
  for (const auto& paths : {alone, blend}) {
    config_.paths.data_path = paths;
    for (const int64_t samples :
         {int64_t{1} << 41, int64_t{1} << 61, int64_t{1} << 62, int64_t{4'000'000'000'000'000'000},
          std::numeric_limits<int64_t>::max()}) {
      for (const int64_t seq_length : {int64_t{1}, int64_t{4}, int64_t{8192}}) {
        config_.seq_length = seq_length;
        config_.train_samples = samples;
        EXPECT_THAT(Error(), HasSubstr("ask for fewer")) << samples << " " << seq_length;
        EXPECT_THAT(Error(), Not(ContainsRegex(" -[0-9]"))) << samples << " " << seq_length;
      }
    }
  }
  config_.paths.data_path = alone;
  config_.train_samples = 1'000'000'000;
  config_.seq_length = std::numeric_limits<int64_t>::max() / 2;
  EXPECT_THAT(Error(), HasSubstr("more tokens than can be counted"));
  // Few samples, but each takes so many epochs that the documents are too many.
  config_.seq_length = int64_t{1} << 50;
  config_.train_samples = 100;
  EXPECT_THAT(Error(), HasSubstr("epochs of 4 sequences"));
}

TEST_F(OrderTest, ASurplusThatCannotBeCountedIsRefused) {
  Write({60});
  config_.seq_length = 4;
  config_.train_samples = 10;
  config_.paths.data_path = {"1", prefix_, "2", prefix_};
  for (const double surplus : {1e300, 1e20, std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN(), -3.0}) {
    config_.mid_level_dataset_surplus = surplus;
    for (const IndexOrder order : {IndexOrder::kMegatron, IndexOrder::kStreamed}) {
      config_.index_order = order;
      EXPECT_THAT(Error(), HasSubstr("--mid-level-dataset-surplus")) << surplus;
    }
  }
}

// Beyond the entries that opening looks at.
TEST_F(OrderTest, ANegativeLengthIsNamedInEveryOrder) {
  Write(std::vector<int32_t>(1000, 2));
  config_.seq_length = 4;
  config_.train_samples = 480;  // reads every sequence
  std::string index = testing::ReadFile(prefix_ + ".idx");
  const int32_t negative = -5;
  std::memcpy(index.data() + 34 + 4 * 101, &negative, sizeof(negative));
  testing::WriteFile(prefix_ + ".idx", index);
  const auto read_all = [this]() -> std::string {
    try {
      const Datasets built = BuildDatasets(config_);
      for (int64_t i = 0; i < built.train->size(); ++i) Tokens(*built.train, i);
    } catch (const DataError& error) {
      return error.what();
    }
    return "(no DataError)";
  };
  EXPECT_THAT(read_all(), HasSubstr(prefix_ + ".idx, offset 438: sequence 101 has the negative "
                                              "length -5"));
  config_.index_order = IndexOrder::kStreamed;
  EXPECT_THAT(read_all(), HasSubstr(prefix_ + ".bin, offset 404 (sequence 101, token 0)"));
  config_.order = DataOrder::kSequential;
  EXPECT_THAT(read_all(), HasSubstr(prefix_ + ".bin, offset 404 (sequence 101, token 0)"));
  config_.order = DataOrder::kDocument;
  config_.train_samples = 1000;
  EXPECT_THAT(read_all(), HasSubstr(prefix_ + ".idx, offset "));
}

TEST_F(OrderTest, AnEmptySplitSaysWhatHelps) {
  Write({5, 5});
  config_.seq_length = 4;
  config_.train_samples = 1;
  config_.valid_samples = 1;
  config_.split = "98,1,1";
  EXPECT_THAT(Error(), AllOf(HasSubstr("the valid split is empty"), HasSubstr("--eval-iters 0")));
  config_.valid_samples = 0;
  config_.test_samples = 1;
  EXPECT_THAT(Error(), AllOf(HasSubstr("the test split is empty"), HasSubstr("--split 99,1,0")));
}

TEST_F(OrderTest, AnIndexWhoseStartsRunWildIsRefused) {
  Write({4, 4, 4, 4});
  config_.seq_length = 4;
  config_.train_samples = 1;
  std::string index = testing::ReadFile(prefix_ + ".idx");
  // The starts of the sequences 1 and 2 are swapped.
  std::swap_ranges(index.begin() + 34 + 16 + 8, index.begin() + 34 + 16 + 16,
                   index.begin() + 34 + 16 + 16);
  testing::WriteFile(prefix_ + ".idx", index);
  EXPECT_THAT(Error(), HasSubstr("x.idx, offset 50: sequence 0 has 4 tokens of 2 bytes"));
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
