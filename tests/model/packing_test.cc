// Documents packed into rows against the same documents by themselves.
#include <gtest/gtest.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>

#include <numeric>
#include <vector>

#include "tests/model/tiny_llama.h"
#include "trainer/model/llama.h"

namespace muster::model {
namespace {

using config::DType;

constexpr int64_t kPositions = 48;
// Rows of documents by length; each row is full.
const std::vector<std::vector<int64_t>> kRows = {{1, 30, 17}, {48}, {20, 1, 1, 26}};

class PackingTest : public ::testing::Test {
 protected:
  PackingTest() : config_(testing::TinyConfig(DType::kFp64)) {
    for (const auto& row : kRows) {
      for (const int64_t length : row) documents_.push_back(Document(length));
    }
  }

  data::Batch Document(int64_t length) const {
    return {at::randint(config_.padded_vocab_size, {1, length}, at::kLong),
            at::randint(config_.padded_vocab_size, {1, length}, at::kLong),
            at::ones({1, length}, at::kFloat)};
  }

  // All documents as kRows lays them.
  data::Batch Packed() const {
    const auto rows = static_cast<int64_t>(kRows.size());
    std::vector<at::Tensor> tokens, labels, masks, positions;
    std::vector<int32_t> cu_seqlens = {0};
    for (const data::Batch& document : documents_) {
      const int64_t length = document.tokens_BS.size(1);
      tokens.push_back(document.tokens_BS);
      labels.push_back(document.labels_BS);
      masks.push_back(document.loss_mask_BS);
      positions.push_back(at::arange(length, at::kLong).view({1, length}));
      cu_seqlens.push_back(cu_seqlens.back() + static_cast<int32_t>(length));
    }
    const auto rows_of = [&](const std::vector<at::Tensor>& parts) {
      return at::cat(parts, 1).view({rows, kPositions});
    };
    return {rows_of(tokens), rows_of(labels), rows_of(masks), rows_of(positions), cu_seqlens};
  }

  config::ModelConfig config_;
  std::vector<data::Batch> documents_;
};

TEST_F(PackingTest, PackedDocumentsTrainAsDocumentsApart) {
  Llama apart(config_), packed(config_);
  double loss = 0;
  for (const data::Batch& document : documents_) {
    loss += apart.ForwardBackward(document).loss.item<double>();
  }
  const LossSum sum = packed.ForwardBackward(Packed());
  // The same sums in another order, in fp64.
  EXPECT_NEAR(sum.loss.item<double>(), loss, 1e-13 * loss);
  EXPECT_EQ(sum.tokens.item<double>(), kPositions * static_cast<double>(kRows.size()));
  EXPECT_LE(testing::RelativeError(packed.gradient_buffer(), apart.gradient_buffer()), 1e-12);
}

TEST_F(PackingTest, SegmentsAndPositionsEachMatter) {
  Llama llama(config_);
  const data::Batch packed = Packed();
  const double both = llama.Evaluate(packed).loss.item<double>();
  data::Batch segments_only = packed;
  segments_only.position_ids_BS = at::Tensor();
  data::Batch positions_only = packed;
  positions_only.cu_seqlens.clear();
  data::Batch neither = segments_only;
  neither.cu_seqlens.clear();
  // Rotary angles are relative, so within its segment a document sees no difference but rounding.
  EXPECT_NEAR(llama.Evaluate(segments_only).loss.item<double>(), both, 1e-5 * both);
  EXPECT_NE(llama.Evaluate(positions_only).loss.item<double>(), both);
  EXPECT_NE(llama.Evaluate(neither).loss.item<double>(), both);
  EXPECT_NE(llama.Evaluate(neither).loss.item<double>(),
            llama.Evaluate(positions_only).loss.item<double>());
}

TEST_F(PackingTest, PlainPositionsAndWholeRowsChangeNothing) {
  Llama llama(config_);
  data::Batch plain = Packed();
  plain.position_ids_BS = at::Tensor();
  plain.cu_seqlens.clear();
  data::Batch spelled_out = plain;
  spelled_out.position_ids_BS =
      at::arange(kPositions, at::kLong).repeat({static_cast<int64_t>(kRows.size()), 1});
  spelled_out.cu_seqlens = {0, 48, 96, 144};
  EXPECT_EQ(llama.Evaluate(plain).loss.item<double>(),
            llama.Evaluate(spelled_out).loss.item<double>());
}

}  // namespace
}  // namespace muster::model
