// Every case of tests/golden/megatron/gpt: index arrays and samples as Megatron makes them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "tests/data/golden.h"
#include "tests/data/sha256.h"
#include "trainer/data/blended_source.h"
#include "trainer/data/dataset.h"
#include "trainer/data/gpt_source.h"
#include "trainer/data/numpy_random.h"

namespace muster::data {
namespace {

using nlohmann::json;
using testing::GoldenRoot;

class GptGolden : public ::testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() { golden_ = std::make_unique<testing::GoldenData>(); }
  static void TearDownTestSuite() { golden_.reset(); }
  static inline std::unique_ptr<testing::GoldenData> golden_;
};

// The words of a data path; prefixes (known by their suffix) get the folder in front.
std::vector<std::string> Words(const json& words, const std::filesystem::path& folder) {
  std::vector<std::string> result;
  if (words.is_null()) return result;
  for (const std::string word : words) {
    result.push_back(word.ends_with("_document") ? (folder / word).string() : word);
  }
  return result;
}

std::optional<int64_t> Size(const json& size) {
  return size.is_null() ? std::nullopt : std::optional<int64_t>(size.get<int64_t>());
}

DataConfig ConfigOf(const json& c, const std::filesystem::path& folder) {
  DataConfig config;
  config.mock_data = c["mock"];
  config.paths.data_path = Words(c["data_path"], folder);
  if (!c["data_path_per_split"].is_null()) {
    config.paths.train_data_path = Words(c["data_path_per_split"][0], folder);
    config.paths.valid_data_path = Words(c["data_path_per_split"][1], folder);
    config.paths.test_data_path = Words(c["data_path_per_split"][2], folder);
  }
  if (!c["split"].is_null()) config.split = c["split"];
  config.seq_length = c["sequence_length"];
  config.seed = c["random_seed"];
  config.train_samples = Size(c["sizes"][0]);
  config.valid_samples = Size(c["sizes"][1]);
  config.test_samples = Size(c["sizes"][2]);
  config.eod = c["eod"];
  const json& options = c["options"];
  config.eod_mask_loss = options["eod_mask_loss"];
  config.reset_position_ids = options["reset_position_ids"];
  config.reset_attention_mask = options["reset_attention_mask"];
  config.inter_document_masking = options.value("inter_document_masking", false);
  config.drop_last_partial_validation_sequence =
      options.value("drop_last_partial_validation_sequence", true);
  config.add_extra_token_to_sequence = options.value("add_extra_token_to_sequence", true);
  config.mid_level_dataset_surplus = options.value("mid_level_dataset_surplus", 0.005);
  config.pad = c["tokenizer"].value("pad_id", -1);
  config.vocab_size = c["tokenizer"].value("vocab_size", 128256);
  return config;
}

void ExpectArray(const json& want, std::span<const uint8_t> bytes) {
  EXPECT_EQ(want["sha256"], testing::Sha256(bytes)) << want["file"];
}

void ExpectIndex(const json& want, const SampleSource& source) {
  const auto* gpt = dynamic_cast<const GptSource*>(&source);
  ASSERT_NE(gpt, nullptr);
  EXPECT_EQ(gpt->size(), want["length"]);
  EXPECT_EQ(gpt->index().num_epochs, want["epochs"]);
  ExpectArray(want["document_index"], gpt->index().document.bytes());
  ExpectArray(want["sample_index"], gpt->index().sample.bytes());
  ExpectArray(want["shuffle_index"], gpt->index().shuffle.bytes());
}

void ExpectValues(const json& want, const std::vector<int64_t>& got, const std::string& what) {
  ASSERT_EQ(want["n"], got.size()) << what;
  for (size_t i = 0; i < std::min<size_t>(8, got.size()); ++i) {
    EXPECT_EQ(want["first8"][i], got[i]) << what << " " << i;
  }
  EXPECT_EQ(want["sha256"], testing::Sha256Of<int64_t>(got)) << what;
}

std::vector<int64_t> LossMask(const Sample& sample) {
  std::vector<int64_t> mask(sample.tokens.size() - 1, 1);
  for (const int32_t input : sample.uncounted) mask[static_cast<size_t>(input)] = 0;
  return mask;
}

std::vector<int64_t> Positions(const Sample& sample) {
  std::vector<int64_t> positions(sample.tokens.size() - 1);
  std::iota(positions.begin(), positions.end(), 0);
  for (const int32_t start : sample.position_starts) {
    std::iota(positions.begin() + start, positions.end(), 0);
  }
  return positions;
}

// Megatron's attention mask: a byte for each query and key, 1 where the query must not look.
std::vector<uint8_t> AttentionMask(const Sample& sample) {
  const auto size = static_cast<int32_t>(sample.tokens.size() - 1);
  std::vector<uint8_t> mask;
  int32_t begin = 0;
  auto next = sample.attention_starts.begin();
  for (int32_t query = 0; query < size; ++query) {
    if (next != sample.attention_starts.end() && *next == query) begin = *next++;
    for (int32_t key = 0; key < size; ++key) mask.push_back(key < begin || key > query);
  }
  return mask;
}

// Bounds of the documents, as cu_seqlens without repeats.
std::vector<int32_t> Bounds(const Sample& sample) {
  std::vector<int32_t> bounds = {0};
  bounds.insert(bounds.end(), sample.attention_starts.begin(), sample.attention_starts.end());
  bounds.push_back(static_cast<int32_t>(sample.tokens.size() - 1));
  return bounds;
}

void ExpectSample(const json& want, const SampleSource& source) {
  const auto seq = static_cast<size_t>(source.seq_length());
  std::vector<int64_t> tokens(seq + 1);
  Sample sample{tokens};
  source.Read(want["index"], sample);
  const std::string what = "sample " + want["index"].dump();
  ExpectValues(want["tokens"], {tokens.begin(), tokens.end() - 1}, what + " tokens");
  ExpectValues(want["labels"], {tokens.begin() + 1, tokens.end()}, what + " labels");
  ExpectValues(want["loss_mask"], LossMask(sample), what + " loss mask");
  ExpectValues(want["position_ids"], Positions(sample), what + " position ids");
  if (want.contains("attention_mask")) {
    EXPECT_EQ(want["attention_mask"]["sha256_of_bytes"], testing::Sha256(AttentionMask(sample)));
  }
  if (want.contains("cu_seqlens")) {
    std::vector<int32_t> bounds = want["cu_seqlens"];
    bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
    EXPECT_EQ(bounds, Bounds(sample)) << what;
  }
}

void ExpectSplit(const json& want, const SampleSource* source) {
  if (want.is_null()) return;
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(want["length"], source->size());
  if (const auto* blend = dynamic_cast<const BlendedSource*>(source)) {
    ASSERT_EQ(want["datasets"].size(), blend->parts().size());
    const auto& index = blend->index();
    ExpectArray(want["dataset_index"], index.dataset.bytes());
    ExpectArray(want["dataset_sample_index"], index.dataset_sample.bytes());
    for (size_t i = 0; i < blend->parts().size(); ++i) {
      ExpectIndex(want["datasets"][i], *blend->parts()[i]);
    }
  } else {
    ASSERT_EQ(want["datasets"].size(), 1);
    ExpectIndex(want["datasets"][0], *source);
  }
  for (const json& sample : want["samples"]) {
    if (!sample.contains("error")) ExpectSample(sample, *source);
  }
}

TEST_P(GptGolden, IndicesAndSamplesAreMegatrons) {
  const json c = testing::ReadJson(GoldenRoot() / "megatron" / "gpt" / (GetParam() + ".json"));
  const Datasets built = BuildDatasets(ConfigOf(c, golden_->path()));
  const json& splits = c["splits"];
  ExpectSplit(splits["train"], built.train.get());
  ExpectSplit(splits["valid"], built.valid.get());
  ExpectSplit(splits["test"], built.test.get());
}

std::vector<std::string> CaseNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(GoldenRoot() / "megatron" / "gpt")) {
    names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Megatron, GptGolden, ::testing::ValuesIn(CaseNames()),
                         [](const auto& param) { return param.param; });

TEST(NumpyIntegers, MockLengthsAreMegatrons) {
  const json want = testing::ReadJson(GoldenRoot() / "megatron" / "mock_lengths.json");
  const std::vector<int32_t> lengths = NumpyIntegers(0, 1, 4096, want["size"]);
  EXPECT_EQ(want["sha256"], testing::Sha256Of<int32_t>(lengths));
}

}  // namespace
}  // namespace muster::data
