#include "trainer/model/llama.h"

#include <gtest/gtest.h>

#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/model/golden.h"
#include "tests/model/tiny_llama.h"
#include "trainer/model/init.h"
#include "trainer/model/parameter_spec.h"
#include "trainer/tensor/dtype.h"

namespace muster::model {
namespace {

using config::DType;
using config::Fp8Recipe;

data::Batch Batch(int64_t first = 0, int64_t count = 2) {
  const checkpoint::SafetensorsReader data(testing::GoldenPath("train/data.safetensors"));
  return testing::SampleBatch(data.Load("samples"), at::Tensor(), first, count);
}

std::map<std::string, at::Tensor> CopyState(Llama& llama) {
  std::map<std::string, at::Tensor> state;
  for (const auto& [name, tensor] : llama.fp8_state()) state[name] = tensor.clone();
  return state;
}

// An amax group in which some other rank always sees twice of what this one sees.
class LouderPeer : public parallel::Communicator {
 public:
  int64_t rank() const override { return 0; }
  int64_t size() const override { return 2; }
  void AllReduce(at::Tensor tensor, parallel::ReduceOp op) override {
    EXPECT_EQ(op, parallel::ReduceOp::kMax);
    sizes.push_back(tensor.numel());
    tensor.mul_(2);
  }
  void Broadcast(at::Tensor, int64_t) override { ADD_FAILURE(); }
  void AllGather(at::Tensor, at::Tensor) override { ADD_FAILURE(); }
  void ReduceScatter(at::Tensor, at::Tensor) override { ADD_FAILURE(); }
  void Send(at::Tensor, int64_t) override { ADD_FAILURE(); }
  void Receive(at::Tensor, int64_t) override { ADD_FAILURE(); }
  void SendReceive(at::Tensor, int64_t, at::Tensor, int64_t) override { ADD_FAILURE(); }
  void Barrier() override { ADD_FAILURE(); }
  void Synchronize() override { ADD_FAILURE(); }

  std::vector<int64_t> sizes;
};

TEST(LlamaTest, TiedHeadSumsBothGradients) {
  config::ModelConfig config = testing::TinyConfig(DType::kFp64);
  Llama untied(config);
  config.untie_embeddings_and_output_weights = false;
  Llama tied(config);
  EXPECT_EQ(tied.parameters().size() + 1, untied.parameters().size());
  untied.parameters().back().value.copy_(untied.parameters().front().value);
  tied.ForwardBackward(Batch());
  untied.ForwardBackward(Batch());
  const at::Tensor expected = untied.parameters().front().grad.add(untied.parameters().back().grad);
  EXPECT_LE(testing::RelativeError(tied.parameters().front().grad, expected), 1e-13);
  for (size_t i = 1; i < tied.parameters().size(); ++i) {
    EXPECT_LE(testing::RelativeError(tied.parameters()[i].grad, untied.parameters()[i].grad),
              1e-13);
  }
}

struct Shape {
  int64_t layers, hidden, ffn, heads, groups, head_dim, vocab, batch, positions;
  bool tied, layernorm_1p;
};

// Along a random direction, the loss changes as the gradients say: central differences in fp64.
TEST(LlamaTest, GradientsMatchFiniteDifferencesForAnyShape) {
  const Shape shapes[] = {
      {1, 24, 40, 4, 4, 6, 97, 3, 7, false, false},  // every head its own KV head
      {2, 20, 33, 6, 1, 4, 50, 1, 33, true, true},   // one KV head for all
      {3, 48, 17, 9, 3, 2, 31, 2, 1, false, true}};  // one position
  for (const Shape& shape : shapes) {
    config::ModelConfig config = testing::TinyConfig(DType::kFp64);
    config.num_layers = shape.layers;
    config.hidden_size = shape.hidden;
    config.ffn_hidden_size = shape.ffn;
    config.num_attention_heads = shape.heads;
    config.num_query_groups = shape.groups;
    config.kv_channels = shape.head_dim;
    config.padded_vocab_size = shape.vocab;
    config.untie_embeddings_and_output_weights = !shape.tied;
    config.apply_layernorm_1p = shape.layernorm_1p;
    config.init_method_std = 0.3;
    Llama llama(config);
    data::Batch batch;
    batch.tokens_BS = at::randint(shape.vocab, {shape.batch, shape.positions}, at::kLong);
    batch.labels_BS = at::randint(shape.vocab, {shape.batch, shape.positions}, at::kLong);
    batch.loss_mask_BS = at::ones({shape.batch, shape.positions}, at::kFloat);
    llama.ForwardBackward(batch);
    double predicted = 0, scale = 0;
    std::vector<at::Tensor> direction;
    for (const Parameter& parameter : llama.parameters()) {
      direction.push_back(at::randn(parameter.value.sizes(), at::kDouble));
      const at::Tensor change = direction.back().mul(parameter.grad);
      predicted += change.sum().item<double>();
      scale += change.square().sum().item<double>();
    }
    const auto loss_at = [&](double distance) {
      for (size_t i = 0; i < direction.size(); ++i) {
        llama.parameters()[i].value.add_(direction[i], distance);
      }
      const double loss = llama.Evaluate(batch).loss.item<double>();
      for (size_t i = 0; i < direction.size(); ++i) {
        llama.parameters()[i].value.sub_(direction[i], distance);
      }
      return loss;
    };
    // Central differences of order 4: truncation is O(step^4), rounding 1e-16 / step. The error is
    // measured against the size of the summands: along some directions their sum is near 0.
    const double step = 2e-5;
    const double measured =
        (8 * (loss_at(step) - loss_at(-step)) - (loss_at(2 * step) - loss_at(-2 * step))) /
        (12 * step);
    EXPECT_NEAR(measured, predicted, 1e-8 * std::sqrt(scale));
  }
}

TEST(LlamaTest, GradientsOfMicroBatchesAddUp) {
  Llama parts(testing::TinyConfig(DType::kFp64));
  Llama whole(testing::TinyConfig(DType::kFp64));
  for (int64_t row = 0; row < 4; ++row) parts.ForwardBackward(Batch(row, 1));
  whole.ForwardBackward(Batch(0, 4));
  EXPECT_LE(testing::RelativeError(parts.gradient_buffer(), whole.gradient_buffer()), 1e-13);
}

TEST(LlamaTest, Bf16StaysNearFp32) {
  const auto exact = testing::LoadTinyLlama(testing::TinyConfig(DType::kFp32));
  for (const Fp8Recipe recipe : {Fp8Recipe::kNone, Fp8Recipe::kTensorwise, Fp8Recipe::kDelayed}) {
    config::ModelConfig config = testing::TinyConfig(DType::kBf16);
    config.fp8.recipe = recipe;
    const auto llama = testing::LoadTinyLlama(config);
    if (recipe == Fp8Recipe::kDelayed) llama->ForwardBackward(Batch());  // scales start at 1
    llama->gradient_buffer().zero_();
    exact->gradient_buffer().zero_();
    const LossSum sum = llama->ForwardBackward(Batch());
    const LossSum expected = exact->ForwardBackward(Batch());
    EXPECT_NEAR(sum.loss.item<double>() / expected.loss.item<double>(), 1, 5e-3);
    const double error = testing::RelativeError(llama->gradient_buffer(), exact->gradient_buffer());
    EXPECT_LE(error, recipe == Fp8Recipe::kNone ? 0.03 : 0.3);
    EXPECT_EQ(llama->Logits(Batch().tokens_BS).scalar_type(), at::kBFloat16);
    EXPECT_EQ(llama->parameters().front().value.scalar_type(), at::kFloat);
  }
}

TEST(LlamaTest, EvaluationChangesNothingAndSeesNewWeights) {
  for (const DType dtype : {DType::kFp32, DType::kBf16}) {
    config::ModelConfig config = testing::TinyConfig(dtype);
    config.fp8.recipe = Fp8Recipe::kDelayed;
    config.fp8.amax_history_len = 4;
    Llama llama(config), undisturbed(config);
    llama.ForwardBackward(Batch(0));
    undisturbed.ForwardBackward(Batch(0));
    const auto state = CopyState(llama);
    const double before = llama.Evaluate(Batch(4)).loss.item<double>();
    EXPECT_EQ(llama.Evaluate(Batch(4)).loss.item<double>(), before);
    llama.Logits(Batch(4).tokens_BS);
    for (const auto& [name, tensor] : llama.fp8_state()) {
      EXPECT_TRUE(tensor.equal(state.at(name))) << name;
    }
    // The iteration goes on as if there had been no evaluation.
    llama.ForwardBackward(Batch(2));
    undisturbed.ForwardBackward(Batch(2));
    EXPECT_TRUE(llama.gradient_buffer().equal(undisturbed.gradient_buffer()));
    // An optimizer step is seen at once, also without BeginIteration.
    for (Parameter& parameter : llama.parameters()) parameter.value.mul_(1.5);
    EXPECT_NE(llama.Evaluate(Batch(4)).loss.item<double>(), before);
  }
}

TEST(LlamaTest, WeightsAreQuantisedOncePerIteration) {
  config::ModelConfig config = testing::TinyConfig(DType::kFp32);
  config.fp8.recipe = Fp8Recipe::kDelayed;
  config.fp8.amax_history_len = 8;
  Llama llama(config);
  const auto rolls = [&](int64_t slot) {
    const at::Tensor history = llama.fp8_state()[1].second.select(1, slot);
    return history.ne(0).sum().item<int64_t>();
  };
  for (int64_t iteration = 1; iteration <= 2; ++iteration) {
    llama.BeginIteration();
    for (int64_t i = 0; i < 3; ++i) llama.ForwardBackward(Batch(i, 1));
    EXPECT_EQ(rolls(0), 3 * iteration);  // input: every micro-batch
    EXPECT_EQ(rolls(1), iteration);      // weight
    EXPECT_EQ(rolls(2), 0);              // output: never fed
  }
}

TEST(LlamaTest, AmaxesAreReducedInOneCallForEachDirection) {
  config::ModelConfig config = testing::TinyConfig(DType::kFp32);
  config.fp8.recipe = Fp8Recipe::kDelayed;
  config.fp8.amax_history_len = 4;
  LouderPeer group;
  Llama alone(config), together(config, {.amax = &group});
  alone.ForwardBackward(Batch());
  together.ForwardBackward(Batch());
  EXPECT_EQ(group.sizes, (std::vector<int64_t>{16 * 3, 16 * 2}));
  const auto single = CopyState(alone);
  for (const auto& [name, tensor] : CopyState(together)) {
    if (name.find("amax_history") != std::string::npos) {
      EXPECT_TRUE(tensor.equal(single.at(name).mul(2))) << name;
    }
  }
  const std::string scale = "decoder.layers.2.mlp.linear_fc1.fp8.scale_fwd";
  EXPECT_EQ(CopyState(together).at(scale)[0].item<float>(), single.at(scale)[0].item<float>() / 2);
}

TEST(LlamaTest, StateRestoredThroughItsViewsContinuesTheRunBitForBit) {
  config::ModelConfig config = testing::TinyConfig(DType::kFp32);
  config.fp8.recipe = Fp8Recipe::kDelayed;
  config.fp8.amax_history_len = 4;
  Llama first(config), resumed(config);
  first.ForwardBackward(Batch(0));
  const auto saved = CopyState(first);
  for (auto& [name, tensor] : resumed.fp8_state()) tensor.copy_(saved.at(name));
  for (Llama* llama : {&first, &resumed}) {
    llama->BeginIteration();
    llama->gradient_buffer().zero_();
    llama->ForwardBackward(Batch(2));
  }
  EXPECT_TRUE(first.gradient_buffer().equal(resumed.gradient_buffer()));
}

TEST(LlamaTest, InitialWeightsFollowTheSeedAndTheRecipe) {
  config::ModelConfig config = testing::TinyConfig(DType::kFp32);
  config.init_method_std = 0.02;
  Llama llama(config), again(config);
  config.seed = 4321;
  Llama other(config);
  const std::vector<ParameterSpec> specs = ParameterSpecs(config);
  for (size_t i = 0; i < specs.size(); ++i) {
    const at::Tensor& value = llama.parameters()[i].value;
    EXPECT_TRUE(value.equal(again.parameters()[i].value));
    const double rms = std::sqrt(value.square().mean().item<double>());
    EXPECT_NEAR(rms, specs[i].init_std, 0.05 * specs[i].init_std) << specs[i].name;
    if (value.dim() == 1) continue;
    EXPECT_LT(std::abs(value.mean().item<double>()), 0.05 * specs[i].init_std) << specs[i].name;
    EXPECT_FALSE(value.equal(other.parameters()[i].value)) << specs[i].name;
  }
  const double fc2 = specs[6].init_std;
  EXPECT_EQ(specs[6].name, "decoder.layers.0.mlp.linear_fc2.weight");
  EXPECT_DOUBLE_EQ(fc2, 0.02 / std::sqrt(8.0));
}

TEST(InitTest, ASliceDrawsWhatTheWholeTensorWould) {
  std::vector<float> whole(101), slice(40);
  FillNormal(7, "w", 1.0, 0, 101, whole.data());
  FillNormal(7, "w", 1.0, 33, 40, slice.data());
  for (size_t i = 0; i < slice.size(); ++i) EXPECT_EQ(slice[i], whole[33 + i]);
}

TEST(LlamaTest, ImpossibleSizesAreNamed) {
  config::ModelConfig config = testing::TinyConfig(DType::kFp32);
  config.num_query_groups = 3;
  try {
    Llama llama(config);
    FAIL();
  } catch (const std::invalid_argument& e) {
    EXPECT_STREQ(e.what(), "--num-attention-heads 8 is not a multiple of --num-query-groups 3");
  }
}

TEST(LlamaTest, TokensOutsideTheVocabularyAreNamed) {
  Llama llama(testing::TinyConfig(DType::kFp32));
  data::Batch batch = Batch();
  batch.tokens_BS = batch.tokens_BS.clone().fill_(512);
  EXPECT_THROW(llama.ForwardBackward(batch), std::out_of_range);
}

TEST(LlamaTest, Bf16GradientsReplaceTheBuffer) {
  Llama llama(testing::TinyConfig(DType::kFp32));
  llama.UseBf16Gradients();
  EXPECT_EQ(llama.gradient_buffer().scalar_type(), at::kBFloat16);
  llama.ForwardBackward(Batch());
  for (const Parameter& parameter : llama.parameters()) {
    EXPECT_EQ(parameter.grad.scalar_type(), at::kBFloat16);
    EXPECT_GT(parameter.grad.abs().max().item<double>(), 0) << parameter.name;
  }
}

}  // namespace
}  // namespace muster::model
