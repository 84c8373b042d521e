#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trainer/model/parameter.h"

namespace muster::optim {

struct AdamWConfig {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;  // not for parameters without weight_decay
};

// The rates of one step: parameters with decoupled_lr (embedding and head) use the second.
struct LearningRates {
  double standard = 0;
  double decoupled = 0;
};

// AdamW with decoupled weight decay (decay times learning rate), as Transformer Engine's FusedAdam.
// Moments have the type of the master values. One thread.
class AdamW {
 public:
  // `parameters` must outlive the optimizer.
  AdamW(std::vector<model::Parameter>* parameters, const AdamWConfig& config);

  // One step with the gradients times `grad_scale` (the clip coefficient; in the moments'
  // precision, so that bf16 gradients are not rounded again). Counts as a step whatever the rates
  // are. Weights and gradients are both fp32, both fp64, or fp32 and bf16 (std::invalid_argument
  // otherwise).
  void Step(const LearningRates& rates, double grad_scale);

  // Steps taken: what the bias correction counts.
  int64_t step_count() const { return step_count_; }
  void set_step_count(int64_t count) { step_count_ = count; }

  // <parameter>.exp_avg and <parameter>.exp_avg_sq: live views.
  std::vector<std::pair<std::string, at::Tensor>> State();

 private:
  struct Moments {
    at::Tensor exp_avg, exp_avg_sq;
  };

  std::vector<model::Parameter>* parameters_;
  AdamWConfig config_;
  std::vector<Moments> moments_;  // one for each parameter
  int64_t step_count_ = 0;
};

}  // namespace muster::optim
