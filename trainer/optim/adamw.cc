#include "trainer/optim/adamw.h"

#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <stdexcept>

#include "trainer/optim/adamw_kernel.h"
#include "trainer/tensor/dtype.h"

namespace muster::optim {
namespace {

template <typename P, typename G>
void Apply(const AdamWStep& step, const model::Parameter& parameter, const at::Tensor& exp_avg,
           const at::Tensor& exp_avg_sq) {
  ApplyAdamW(step, parameter.value.numel(), Data<const G>(parameter.grad), Data<P>(parameter.value),
             Data<P>(exp_avg), Data<P>(exp_avg_sq));
}

}  // namespace

AdamW::AdamW(std::vector<model::Parameter>* parameters, const AdamWConfig& config)
    : parameters_(parameters), config_(config) {
  for (const model::Parameter& parameter : *parameters_) {
    moments_.push_back({at::zeros_like(parameter.value), at::zeros_like(parameter.value)});
  }
}

void AdamW::Step(const LearningRates& rates, double grad_scale) {
  ++step_count_;
  const double steps = static_cast<double>(step_count_);
  AdamWStep step{};
  step.beta1 = config_.beta1;
  step.beta2 = config_.beta2;
  step.epsilon = config_.epsilon;
  step.correction1 = 1 - std::pow(config_.beta1, steps);
  step.correction2 = 1 - std::pow(config_.beta2, steps);
  step.grad_scale = grad_scale;
  for (size_t i = 0; i < parameters_->size(); ++i) {
    const model::Parameter& parameter = (*parameters_)[i];
    step.lr = parameter.decoupled_lr ? rates.decoupled : rates.standard;
    step.weight_decay = parameter.weight_decay ? config_.weight_decay : 0;
    const auto& [exp_avg, exp_avg_sq] = moments_[i];
    const at::ScalarType value = parameter.value.scalar_type(), grad = parameter.grad.scalar_type();
    if (value == at::kDouble && grad == at::kDouble) {
      Apply<double, double>(step, parameter, exp_avg, exp_avg_sq);
    } else if (value == at::kFloat && grad == at::kBFloat16) {
      Apply<float, Bfloat16>(step, parameter, exp_avg, exp_avg_sq);
    } else if (value == at::kFloat && grad == at::kFloat) {
      Apply<float, float>(step, parameter, exp_avg, exp_avg_sq);
    } else {
      throw std::invalid_argument(parameter.name + ": no AdamW for " + c10::toString(value) +
                                  " weights with " + c10::toString(grad) + " gradients");
    }
  }
}

std::vector<std::pair<std::string, at::Tensor>> AdamW::State() {
  std::vector<std::pair<std::string, at::Tensor>> state;
  for (size_t i = 0; i < parameters_->size(); ++i) {
    const std::string& name = (*parameters_)[i].name;
    state.emplace_back(name + ".exp_avg", moments_[i].exp_avg);
    state.emplace_back(name + ".exp_avg_sq", moments_[i].exp_avg_sq);
  }
  return state;
}

}  // namespace muster::optim
