#include <gtest/gtest.h>

#include <ATen/ops/zeros.h>

#include <cmath>
#include <string>

#include "tests/model/golden.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/fp8/delayed_recipe.h"
#include "trainer/fp8/gemm.h"
#include "trainer/fp8/recipe.h"
#include "trainer/fp8/scaling.h"
#include "trainer/layers/linear.h"
#include "trainer/tensor/dtype.h"

// Casts, single linears and a delayed-scaling sequence against tests/golden/llama/fp8.

namespace muster::fp8 {
namespace {

using checkpoint::SafetensorsReader;
using testing::GoldenPath;

bool SameCodes(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == at::kByte && a.sizes() == b.sizes() && a.equal(b);
}

void ExpectClose(const at::Tensor& actual, const at::Tensor& expected) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  const at::Tensor wanted = expected.to(at::kDouble);
  const double error = actual.to(at::kDouble).sub(wanted).abs().max().item<double>();
  EXPECT_LE(error, 1e-6 * wanted.abs().max().item<double>());
}

// Rounded results may flip by one bf16 step where the exact result lies near a tie.
void ExpectCloseInBf16(const at::Tensor& actual, const at::Tensor& expected) {
  const at::Tensor a = actual.to(at::kBFloat16).view(at::kShort).to(at::kLong);
  const at::Tensor b = expected.contiguous().view(at::kShort).to(at::kLong);
  const at::Tensor steps = a.sub(b).abs();
  EXPECT_LE(steps.max().item<int64_t>(), 1);
  EXPECT_LT(steps.to(at::kDouble).mean().item<double>(), 1e-3);
}

TEST(CastTest, EqualsTheGoldenCodesAndDecodedValues) {
  const SafetensorsReader golden(GoldenPath("fp8/cast.safetensors"));
  for (const Format format : {Format::kE4m3, Format::kE5m2}) {
    const std::string name = format == Format::kE4m3 ? "e4m3" : "e5m2";
    const at::Tensor decoded = golden.Load("decode_" + name);
    for (int code = 0; code < 256; ++code) {
      const float expected = Data<float>(decoded)[code];
      const float value = Decode(format, static_cast<uint8_t>(code));
      EXPECT_TRUE(value == expected || (std::isnan(value) && std::isnan(expected))) << code;
    }
    const at::Tensor expected = golden.Load("cast_" + name);
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
      const QuantizedTensor q = Quantize(golden.Load("cast_in").to(dtype), 1.0f, format);
      for (int64_t i = 0; i < expected.numel(); ++i) {
        const uint8_t actual = Data<uint8_t>(q.codes)[i], wanted = Data<uint8_t>(expected)[i];
        const bool both_nan =
            std::isnan(Decode(format, actual)) && std::isnan(Decode(format, wanted));
        EXPECT_TRUE(actual == wanted || both_nan) << "element " << i;
      }
    }
  }
}

class LinearGoldenTest : public ::testing::TestWithParam<const char*> {};

TEST_P(LinearGoldenTest, OperandsAndProductsMatch) {
  const SafetensorsReader golden(GoldenPath("fp8/linear.safetensors"));
  const std::string prefix = std::string(GetParam()) + ".";
  const auto quantize = [&](const std::string& name, Format format) {
    const at::Tensor source = golden.Load(name);
    const float scale = *Data<float>(golden.Load(prefix + name + "_scale"));
    if (prefix == "current.") {
      EXPECT_EQ(CurrentScale(Amax(source), format), scale);
    }
    QuantizedTensor q = Quantize(source, scale, format);
    EXPECT_TRUE(SameCodes(q.codes, golden.Load(prefix + name + "_q"))) << name;
    return q;
  };
  const QuantizedTensor x = quantize("x", Format::kE4m3);
  const QuantizedTensor w = quantize("w", Format::kE4m3);
  const QuantizedTensor dy = quantize("dy", Format::kE5m2);

  const Gemm gemm(at::kFloat, /*round_to_bf16=*/false);
  ExpectClose(gemm.Forward(x, w), golden.Load(prefix + "y"));
  ExpectClose(gemm.InputGradient(dy, w), golden.Load(prefix + "dx"));
  const at::Tensor dw = at::zeros({96, 64}, at::kFloat);
  Gemm::AddWeightGradient(dy, x, dw);
  ExpectClose(dw, golden.Load(prefix + "dw"));
  Gemm::AddWeightGradient(dy, x, dw);
  ExpectClose(dw, golden.Load(prefix + "dw").mul(2));

  const Gemm rounding(at::kFloat, /*round_to_bf16=*/true);
  ExpectCloseInBf16(rounding.Forward(x, w), golden.Load(prefix + "y_bf16"));
  ExpectCloseInBf16(rounding.InputGradient(dy, w), golden.Load(prefix + "dx_bf16"));
  const at::Tensor dw_bf16 = at::zeros({96, 64}, at::kBFloat16);
  Gemm::AddWeightGradient(dy, x, dw_bf16);
  ExpectCloseInBf16(dw_bf16, golden.Load(prefix + "dw_bf16"));
}

INSTANTIATE_TEST_SUITE_P(Recipes, LinearGoldenTest, ::testing::Values("current", "delayed"));

// One linear over 4 iterations of 3 micro-batches. The weight is quantised on the first of each;
// backward follows forward.
TEST(LinearSequenceTest, DelayedStateAndResultsMatch) {
  const SafetensorsReader golden(GoldenPath("fp8/linear_sequence.safetensors"));
  config::Fp8Config config;
  config.recipe = config::Fp8Recipe::kDelayed;
  config.amax_history_len = 5;
  config.amax_algo = config::AmaxAlgo::kMax;
  DelayedRecipe recipe(config, {"linear"}, nullptr);
  const auto state = recipe.State();
  const auto named = [&](const std::string& name) {
    for (const auto& [known, tensor] : state) {
      if (known == "linear.fp8." + name) return tensor;
    }
    throw std::out_of_range(name);
  };
  const at::Tensor scale_fwd = named("scale_fwd"), scale_bwd = named("scale_bwd");
  const layers::Numerics numerics{at::kFloat, false, &recipe, Gemm(at::kFloat, false)};

  model::Parameter parameter{"w", at::zeros({32, 48}), at::zeros({32, 48})};
  layers::Weight weight(&parameter);
  layers::Linear linear(&weight, 0);
  const at::Tensor w = golden.Load("w"), x = golden.Load("x"), dy = golden.Load("dy");
  for (int64_t step = 0; step < 12; ++step) {
    SCOPED_TRACE("micro-batch " + std::to_string(step));
    if (step % 3 == 0) {
      parameter.value.copy_(w[step / 3]);
      weight.Invalidate();
      linear.Invalidate();
    }
    const at::Tensor used = golden.Load("scale_used")[step];
    EXPECT_EQ(scale_fwd[0].item<float>(), used[0].item<float>());
    EXPECT_EQ(scale_bwd[0].item<float>(), used[2].item<float>());
    if (step % 3 == 0) {
      EXPECT_EQ(scale_fwd[1].item<float>(), used[1].item<float>());
    }
    EXPECT_TRUE(SameCodes(Quantize(x[step], used[0].item<float>(), Format::kE4m3).codes,
                          golden.Load("x_q")[step]));
    EXPECT_TRUE(SameCodes(Quantize(w[step / 3], used[1].item<float>(), Format::kE4m3).codes,
                          golden.Load("w_q")[step]));
    EXPECT_TRUE(SameCodes(Quantize(dy[step], used[2].item<float>(), Format::kE5m2).codes,
                          golden.Load("dy_q")[step]));

    parameter.grad.zero_();
    layers::Context ctx(numerics, /*training=*/true, 1, 16);
    ExpectClose(linear.Forward(ctx, x[step]), golden.Load("y")[step]);
    recipe.AfterForward();
    ExpectClose(linear.Backward(ctx, dy[step]), golden.Load("dx")[step]);
    recipe.AfterBackward();
    ExpectClose(parameter.grad, golden.Load("dw")[step]);

    EXPECT_TRUE(scale_fwd.equal(golden.Load("fwd_scale_after")[step]));
    EXPECT_TRUE(scale_bwd.equal(golden.Load("bwd_scale_after")[step]));
    EXPECT_TRUE(named("amax_history_fwd").equal(golden.Load("fwd_history_after")[step]));
    EXPECT_TRUE(named("amax_history_bwd").equal(golden.Load("bwd_history_after")[step]));
  }
}

TEST(RecipeTest, EvaluationLeavesTheStateAlone) {
  config::Fp8Config config;
  config.recipe = config::Fp8Recipe::kDelayed;
  config.amax_history_len = 3;
  DelayedRecipe recipe(config, {"a", "b"}, nullptr);
  recipe.Quantize(1, Role::kInput, at::zeros({4}).fill_(2.0), /*record=*/false);
  for (const auto& [name, tensor] : recipe.State()) {
    EXPECT_EQ(tensor.sum().item<double>(),
              name.find("scale") != std::string::npos ? tensor.numel() : 0)
        << name;
  }
}

TEST(RecipeTest, MarginFormatAndAlgorithmReachTheScales) {
  for (const auto algo : {config::AmaxAlgo::kMax, config::AmaxAlgo::kMostRecent}) {
    config::Fp8Config config;
    config.recipe = config::Fp8Recipe::kDelayed;
    config.format = config::Fp8Format::kE4m3;
    config.amax_history_len = 4;
    config.amax_algo = algo;
    config.margin = 2;
    DelayedRecipe recipe(config, {"a"}, nullptr);
    for (const double amax : {8.0, 2.0}) {
      const at::Tensor x = at::zeros({4}).fill_(amax);
      recipe.Quantize(0, Role::kInput, x, /*record=*/true);
      recipe.AfterForward();
      EXPECT_EQ(recipe.Quantize(0, Role::kGradOutput, x, /*record=*/true).format, Format::kE4m3);
      recipe.AfterBackward();
    }
    const float largest = algo == config::AmaxAlgo::kMax ? 8 : 2;
    for (const auto& [name, tensor] : recipe.State()) {
      if (name.find("scale") == std::string::npos) continue;
      EXPECT_EQ(tensor[0].item<float>(), 448.0f / 4 / largest) << name;
    }
  }
}

TEST(RecipeTest, HybridTrainsBackwardInE5m2) {
  using config::Fp8Format;
  for (const Role role : {Role::kInput, Role::kWeight, Role::kGradOutput}) {
    EXPECT_EQ(FormatOf(Fp8Format::kE4m3, role), Format::kE4m3);
    EXPECT_EQ(FormatOf(Fp8Format::kHybrid, role),
              role == Role::kGradOutput ? Format::kE5m2 : Format::kE4m3);
  }
}

TEST(RecipeTest, AnEmptyHistoryIsRefused) {
  config::Fp8Config config;
  config.recipe = config::Fp8Recipe::kDelayed;
  config.amax_history_len = 0;
  EXPECT_THROW(MakeRecipe(config, {"linear"}, nullptr), std::invalid_argument);
  config.recipe = config::Fp8Recipe::kNone;
  EXPECT_EQ(MakeRecipe(config, {"linear"}, nullptr), nullptr);
}

}  // namespace
}  // namespace muster::fp8
