#pragma once

#include <cstdint>

#include "trainer/device/memory_plan.h"
#include "trainer/device/model.h"
#include "trainer/optim/adamw.h"

namespace muster::device {

// optim::AdamW and the gradients' norm on the device. The division by tokens is not a pass of its
// own: it is applied where gradients are read.
class Optimizer {
 public:
  Optimizer(Model* model, const optim::AdamWConfig& config);

  // From now on gradients count as divided by `tokens`; their L2 norm, so divided. Waits for the
  // device.
  double Normalize(double tokens);
  // Multiplies all gradients now.
  void ScaleGradients(double factor);
  // A step with the gradients times `coefficient`. Makes the weights' FP8 or bf16 copies anew.
  void Step(const optim::LearningRates& rates, double coefficient);
  // The first parameter with a gradient that is not finite; empty when there is none.
  std::string NonFiniteGradient();

  int64_t step_count() const { return step_count_; }
  void set_step_count(int64_t count) { step_count_ = count; }

 private:
  template <typename G>
  double SumOfSquares(const G* gradients, int64_t count);
  template <typename M>
  void StepWeight(const kernels::AdamWRule& rule, const Weight& weight);

  Model& model_;
  const optim::AdamWConfig config_;
  double* squares_;
  float* factors_;  // clip coefficient, 1 / tokens
  double inverse_tokens_ = 1;
  int64_t step_count_ = 0;
};

}  // namespace muster::device
