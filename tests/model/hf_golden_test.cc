#include <gtest/gtest.h>

#include <ATen/ops/ones_like.h>

#include <string>

#include "tests/model/golden.h"
#include "tests/model/tiny_llama.h"
#include "trainer/kernels/rope.h"
#include "trainer/tensor/dtype.h"

// Logits, loss and gradients of the tiny Llama against Hugging Face's, in every precision, with
// norm weights as gamma and as gamma - 1. Tolerances: tests/golden/llama/README.md, section 1.

namespace muster {
namespace {

using config::DType;
using testing::GoldenPath;

struct Case {
  const char* name;
  DType dtype;
  bool layernorm_1p;
  bool llama3_rope;
};

class HfGoldenTest : public ::testing::TestWithParam<Case> {
 protected:
  config::ModelConfig Config() const {
    config::ModelConfig config = testing::TinyConfig(GetParam().dtype);
    config.apply_layernorm_1p = GetParam().layernorm_1p;
    if (GetParam().llama3_rope) config.rope_scaling = {true, 8, 1, 4, 64};
    return config;
  }
  std::string File() const {
    return GetParam().llama3_rope ? "hf/llama3rope.safetensors" : "hf/plain.safetensors";
  }
};

data::Batch GoldenBatch() {
  const checkpoint::SafetensorsReader plain(GoldenPath("hf/plain.safetensors"));
  data::Batch batch;
  batch.tokens_BS = plain.Load("input_ids");
  batch.labels_BS = plain.Load("labels");
  batch.loss_mask_BS = at::ones_like(batch.tokens_BS, at::kFloat);
  return batch;
}

TEST_P(HfGoldenTest, LogitsLossAndGradientsMatch) {
  const checkpoint::SafetensorsReader golden(GoldenPath(File()));
  const config::ModelConfig config = Config();
  const auto llama = testing::LoadTinyLlama(config);
  const data::Batch batch = GoldenBatch();

  at::Tensor logits = llama->Logits(batch.tokens_BS).to(at::kDouble);
  at::Tensor expected;
  if (GetParam().llama3_rope) {
    expected = golden.Load("logits_tail");
    logits = logits.narrow(1, 64 - 24, 24);
  } else {
    expected = golden.Load("logits");
  }
  EXPECT_LE(logits.sub(expected).abs().max().item<double>(), 2e-5);

  const double loss = golden.Load("loss").item<double>();
  const model::LossSum evaluated = llama->Evaluate(batch);
  EXPECT_NEAR(evaluated.loss.item<double>() / 128, loss, 2e-6);
  EXPECT_EQ(llama->gradient_buffer().abs().max().item<double>(), 0);

  const model::LossSum sum = llama->ForwardBackward(batch);
  EXPECT_EQ(sum.loss.item<double>(), evaluated.loss.item<double>());
  EXPECT_EQ(sum.tokens.item<double>(), 128);
  llama->gradient_buffer().div_(128);
  int compared = 0;
  for (const auto& [name, gradient] :
       testing::HfTensors(config, *llama, model::HfKind::kGradients)) {
    if (golden.Contains("grad." + name)) {
      EXPECT_LE(testing::RelativeError(gradient, golden.Load("grad." + name)), 2e-5) << name;
      ++compared;
    }
    if (golden.Contains("grad_norm." + name)) {
      const double norm = golden.Load("grad_norm." + name).item<double>();
      EXPECT_NEAR(gradient.norm().item<double>() / norm, 1, 2e-5) << name;
      ++compared;
    }
  }
  EXPECT_GE(compared, 39);  // all parameters
}

TEST_P(HfGoldenTest, RopeFrequenciesMatch) {
  const checkpoint::SafetensorsReader golden(GoldenPath(File()));
  const config::ModelConfig config = Config();
  const std::vector<float> frequencies =
      kernels::RopeFrequencies(config.kv_channels, config.rotary_base, config.rope_scaling);
  const at::Tensor expected = golden.Load("inv_freq");
  ASSERT_EQ(static_cast<int64_t>(frequencies.size()), expected.numel());
  for (size_t i = 0; i < frequencies.size(); ++i) {
    EXPECT_EQ(frequencies[i], Data<float>(expected)[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Numerics, HfGoldenTest,
                         ::testing::Values(Case{"Fp32", DType::kFp32, true, false},
                                           Case{"Fp32Gamma", DType::kFp32, false, false},
                                           Case{"Fp64", DType::kFp64, true, false},
                                           Case{"Fp32Llama3Rope", DType::kFp32, true, true},
                                           Case{"Fp64Llama3Rope", DType::kFp64, false, true}),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(HfRoundTripTest, ExportGivesTheLoadedWeights) {
  const checkpoint::SafetensorsReader golden(GoldenPath("hf/model.safetensors"));
  const config::ModelConfig config = testing::TinyConfig(DType::kFp32);
  const auto llama = testing::LoadTinyLlama(config);
  const auto exported = testing::HfTensors(config, *llama, model::HfKind::kWeights);
  EXPECT_EQ(exported.size(), golden.tensors().size());
  for (const auto& [name, tensor] : exported) {
    EXPECT_TRUE(tensor.equal(golden.Load(name))) << name;
  }
}

TEST(HfRoundTripTest, PaddingRowsAreKeptOnLoadAndCutOnExport) {
  config::ModelConfig config = testing::TinyConfig(DType::kFp32);
  config.padded_vocab_size = 640;
  const auto untouched = std::make_unique<model::Llama>(config);
  const auto llama = testing::LoadTinyLlama(config);
  const auto padding = [](model::Llama& m) {
    return m.parameters().back().value.narrow(0, 512, 128);
  };
  EXPECT_TRUE(padding(*llama).equal(padding(*untouched)));
  const model::NamedTensors exported =
      model::ToHf(config, llama->parameters(), model::HfKind::kWeights, 512);
  EXPECT_EQ(exported.front().second.size(0), 512);
  EXPECT_EQ(exported.back().second.size(0), 512);
}

TEST(HfLoadTest, OtherPrecisionsAreConvertedAndQuantisedWeightsRefused) {
  const config::ModelConfig config = testing::TinyConfig(DType::kFp32);
  const checkpoint::SafetensorsReader golden(GoldenPath("hf/model.safetensors"));
  const auto load_as = [&](at::ScalarType dtype) {
    auto llama = std::make_unique<model::Llama>(config);
    model::LoadHfWeights(
        config, [&](const std::string& name) { return golden.Load(name).to(dtype); },
        llama->parameters());
    return testing::HfTensors(config, *llama, model::HfKind::kWeights);
  };
  for (const auto& [name, tensor] : load_as(at::kBFloat16)) {  // the golden weights are exact in it
    EXPECT_TRUE(tensor.equal(golden.Load(name))) << name;
  }
  try {
    load_as(at::kFloat8_e4m3fn);
    FAIL() << "loaded FP8 codes without their scales";
  } catch (const std::invalid_argument& e) {
    EXPECT_STREQ(e.what(),
                 "tensor 'model.embed_tokens.weight' is Float8_e4m3fn: quantised weights are not "
                 "supported");
  }
}

TEST(HfLoadTest, AShapeThatDiffersIsNamed) {
  config::ModelConfig config = testing::TinyConfig(DType::kFp32);
  config.ffn_hidden_size = 144;
  try {
    testing::LoadTinyLlama(config);
    FAIL() << "loaded a wrong shape";
  } catch (const std::invalid_argument& e) {
    EXPECT_STREQ(
        e.what(),
        "tensor 'model.layers.0.mlp.gate_proj.weight' has shape [160, 64], the model needs "
        "[144, 64]");
  }
}

}  // namespace
}  // namespace muster
