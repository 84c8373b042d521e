#include "trainer/device/optimizer.h"

#include <algorithm>
#include <cmath>

namespace muster::device {

Optimizer::Optimizer(Model* model, const optim::AdamWConfig& config)
    : model_(*model), config_(config) {
  Planner planner;
  planner.Want(&squares_, "squares", 1);
  planner.Want(&factors_, "factors", 2);
  const int64_t bytes = planner.LayOut();
  planner.Bind(model_.ops().Allocate(bytes));
}

template <typename G>
double Optimizer::SumOfSquares(const G* gradients, int64_t count) {
  Ops& ops = model_.ops();
  double sum = 0;
  ops.Zero(squares_, sizeof(double));
  ops.AddSquares(count, gradients, squares_);
  ops.Download(&sum, squares_, sizeof(sum));
  return sum;
}

double Optimizer::Normalize(double tokens) {
  inverse_tokens_ = 1.0 / std::max(tokens, 1.0);
  const auto& fp32 = model_.weights().gradients();
  const auto& bf16 = model_.weights().bf16_gradients();
  double sum = SumOfSquares(fp32.data, fp32.count);
  if (bf16.count > 0) sum += SumOfSquares(bf16.data, bf16.count);
  return std::sqrt(sum) * inverse_tokens_;
}

void Optimizer::ScaleGradients(double factor) {
  const auto& fp32 = model_.weights().gradients();
  const auto& bf16 = model_.weights().bf16_gradients();
  model_.ops().Scale(fp32.count, static_cast<float>(factor), fp32.data);
  model_.ops().Scale(bf16.count, static_cast<float>(factor), bf16.data);
}

template <typename M>
void Optimizer::StepWeight(const kernels::AdamWRule& rule, const Weight& w) {
  Ops& ops = model_.ops();
  auto* const exp_avg = static_cast<M*>(w.exp_avg);
  auto* const exp_avg_sq = static_cast<M*>(w.exp_avg_sq);
  if (w.linear < 0) {
    return ops.AdamWBf16(rule, w.count(), w.grad, w.master, exp_avg, exp_avg_sq, w.copy);
  }
  model_.scaler()->Make(
      w.linear, fp8::Role::kWeight, w.codes, w.transposed, true,
      [&](const kernels::Fp8Output& out, bool again) {
        if (again) {
          ops.CastToFp8(w.rows, w.columns, w.master, out);
        } else if (w.bf16_grad != nullptr) {
          ops.AdamWFp8(rule, w.rows, w.columns, w.bf16_grad, w.master, exp_avg, exp_avg_sq, out);
        } else {
          ops.AdamWFp8(rule, w.rows, w.columns, w.grad, w.master, exp_avg, exp_avg_sq, out);
        }
      });
}

void Optimizer::Step(const optim::LearningRates& rates, double coefficient) {
  ++step_count_;
  const auto steps = static_cast<double>(step_count_);
  const float factors[2] = {static_cast<float>(coefficient), static_cast<float>(inverse_tokens_)};
  model_.ops().Upload(factors_, factors, sizeof(factors));
  kernels::AdamWRule rule{};
  rule.beta1 = static_cast<float>(config_.beta1);
  rule.beta2 = static_cast<float>(config_.beta2);
  rule.epsilon = static_cast<float>(config_.epsilon);
  rule.correction1 = static_cast<float>(1 - std::pow(config_.beta1, steps));
  rule.correction2 = static_cast<float>(1 - std::pow(config_.beta2, steps));
  rule.clip = factors_;
  rule.inverse_tokens = factors_ + 1;
  for (const Weight& weight : model_.weights().all()) {
    rule.lr = static_cast<float>(weight.spec.decoupled_lr ? rates.decoupled : rates.standard);
    rule.weight_decay =
        weight.spec.shape.size() > 1 ? static_cast<float>(config_.weight_decay) : 0.0f;
    if (model_.weights().types().bf16_moments) {
      StepWeight<Bfloat16>(rule, weight);
    } else {
      StepWeight<float>(rule, weight);
    }
  }
  inverse_tokens_ = 1;
}

std::string Optimizer::NonFiniteGradient() {
  for (const Weight& weight : model_.weights().all()) {
    const double sum = weight.bf16_grad != nullptr ? SumOfSquares(weight.bf16_grad, weight.count())
                                                   : SumOfSquares(weight.grad, weight.count());
    if (!std::isfinite(sum)) return weight.spec.name;
  }
  return "";
}

}  // namespace muster::device
