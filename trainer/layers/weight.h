#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/layers/context.h"
#include "trainer/model/parameter.h"

namespace muster::layers {

// A parameter as layers use it: the master value, its copy in the compute type, its main gradient.
// One thread.
class Weight {
 public:
  // `parameter` must outlive the weight.
  explicit Weight(model::Parameter* parameter) : parameter_(parameter) {}

  // The master has changed: the next use in training makes a new copy. Evaluation always reads the
  // master.
  void Invalidate() { stale_ = true; }

  // In the compute type. The master itself where no conversion is needed: not to be written.
  at::Tensor Get(const Context& ctx);

  const at::Tensor& gradient() const { return parameter_->grad; }
  // gradient += delta, in the gradient's type.
  void AddGradient(const at::Tensor& delta) { parameter_->grad.add_(delta); }

 private:
  at::Tensor Convert(const Numerics& numerics) const;

  model::Parameter* parameter_;
  bool stale_ = true;
  at::Tensor copy_;
};

}  // namespace muster::layers
