#include "trainer/optim/adamw.h"

#include <gtest/gtest.h>

#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <limits>

#include "trainer/optim/gradients.h"

namespace muster::optim {
namespace {

model::Parameter MakeParameter(const char* name, at::IntArrayRef sizes, at::ScalarType dtype) {
  const at::Tensor value = at::randn(sizes, dtype);
  return {name, value, at::zeros_like(value), false, sizes.size() > 1};
}

// The textbook formula, one tensor at a time in fp64.
struct Reference {
  at::Tensor p, m, v;
  explicit Reference(const at::Tensor& value)
      : p(value.to(at::kDouble).clone()), m(at::zeros_like(p)), v(at::zeros_like(p)) {}
  void Step(const at::Tensor& grad, double lr, double decay, int64_t t) {
    const at::Tensor g = grad.to(at::kDouble);
    m = m.mul(0.9).add(g, 0.1);
    v = v.mul(0.95).add(g.square(), 0.05);
    const double c1 = 1 - std::pow(0.9, t), c2 = 1 - std::pow(0.95, t);
    const at::Tensor update = m.div(c1).div(v.div(c2).sqrt().add(1e-8));
    p = p.sub(update.add(p, decay), lr);
  }
};

double LargestError(const at::Tensor& a, const at::Tensor& b) {
  return a.to(at::kDouble).sub(b).abs().max().item<double>();
}

TEST(AdamWTest, FollowsTheFormulaInEveryType) {
  for (const at::ScalarType grad_type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    const at::ScalarType master = grad_type == at::kDouble ? at::kDouble : at::kFloat;
    std::vector<model::Parameter> parameters = {MakeParameter("matrix", {9, 7}, master),
                                                MakeParameter("norm", {33}, master),
                                                MakeParameter("embedding", {5, 8}, master)};
    parameters[2].decoupled_lr = true;
    std::vector<Reference> references;
    for (const auto& parameter : parameters) references.emplace_back(parameter.value);
    AdamW adam(&parameters, {0.9, 0.95, 1e-8, 0.1});
    for (int64_t t = 1; t <= 5; ++t) {
      for (size_t i = 0; i < parameters.size(); ++i) {
        parameters[i].grad = at::randn(parameters[i].value.sizes(), master).to(grad_type);
        const at::Tensor scaled = parameters[i].grad.to(at::kDouble).mul(0.5);
        references[i].Step(scaled, i == 2 ? 0.03 : 0.01, i == 1 ? 0 : 0.1, t);
      }
      adam.Step({0.01, 0.03}, 0.5);
    }
    EXPECT_EQ(adam.step_count(), 5);
    for (size_t i = 0; i < parameters.size(); ++i) {
      EXPECT_LE(LargestError(parameters[i].value, references[i].p),
                master == at::kDouble ? 1e-14 : 2e-6)
          << parameters[i].name;
    }
    const auto state = adam.State();
    ASSERT_EQ(state.size(), 6u);
    EXPECT_EQ(state[2].first, "norm.exp_avg");
    EXPECT_EQ(state[3].first, "norm.exp_avg_sq");
    EXPECT_LE(LargestError(state[3].second, references[1].v), 1e-6);
  }
}

TEST(AdamWTest, OtherPairsOfTypesAreRefused) {
  std::vector<model::Parameter> parameters = {MakeParameter("matrix", {4, 4}, at::kDouble)};
  parameters[0].grad = parameters[0].grad.to(at::kBFloat16);
  AdamW adam(&parameters, {});
  EXPECT_THROW(adam.Step({0.1, 0.1}, 1), std::invalid_argument);
}

TEST(AdamWTest, RateZeroMovesMomentsButNoParameter) {
  std::vector<model::Parameter> parameters = {MakeParameter("matrix", {4, 4}, at::kFloat)};
  const at::Tensor before = parameters[0].value.clone();
  parameters[0].grad.fill_(1);
  AdamW adam(&parameters, {});
  adam.Step({0, 0}, 1);
  EXPECT_TRUE(parameters[0].value.equal(before));
  EXPECT_GT(adam.State()[0].second.abs().min().item<double>(), 0);
  EXPECT_EQ(adam.step_count(), 1);
}

TEST(AdamWTest, StateAndStepCountContinueARun) {
  std::vector<model::Parameter> parameters = {MakeParameter("matrix", {6, 3}, at::kFloat)};
  parameters[0].grad.fill_(0.3);
  AdamW first(&parameters, {});
  first.Step({0.1, 0.1}, 1);
  std::vector<model::Parameter> copies = parameters;
  copies[0].value = parameters[0].value.clone();
  AdamW resumed(&copies, {});
  for (size_t i = 0; i < 2; ++i) resumed.State()[i].second.copy_(first.State()[i].second);
  resumed.set_step_count(first.step_count());
  first.Step({0.1, 0.1}, 1);
  resumed.Step({0.1, 0.1}, 1);
  EXPECT_TRUE(copies[0].value.equal(parameters[0].value));
}

TEST(GradientsTest, NormDivisionAndClipping) {
  at::Tensor gradients = at::randn({1001}, at::kFloat);
  const double exact = gradients.to(at::kDouble).norm().item<double>();
  EXPECT_NEAR(GradientNorm(gradients) / exact, 1, 1e-12);
  EXPECT_NEAR(GradientNorm(gradients.to(at::kBFloat16)) / exact, 1, 1e-2);
  DivideByTokens(gradients, 8);
  EXPECT_NEAR(GradientNorm(gradients) * 8 / exact, 1, 1e-6);
  DivideByTokens(gradients, 0);  // a batch without tokens: unchanged
  EXPECT_NEAR(GradientNorm(gradients) * 8 / exact, 1, 1e-6);

  EXPECT_DOUBLE_EQ(ClipCoefficient(4, 1), 1 / (4 + 1e-6));
  EXPECT_EQ(ClipCoefficient(0.5, 1), 1);
  EXPECT_EQ(ClipCoefficient(1.0, 1), 1 / (1 + 1e-6));
  EXPECT_EQ(ClipCoefficient(100, 0), 1);
  gradients[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(GradientNorm(gradients)));
}

}  // namespace
}  // namespace muster::optim
