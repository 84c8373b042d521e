#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/layers/context.h"
#include "trainer/layers/weight.h"

namespace muster::layers {

// RMSNorm over the channels C of each token.
class Norm {
 public:
  // `zero_centered`: the weight holds gamma - 1.
  Norm(Weight* weight_C, double epsilon, bool zero_centered)
      : weight_(weight_C), epsilon_(epsilon), offset_(zero_centered ? 1.0 : 0.0) {}

  at::Tensor Forward(Context& ctx, const at::Tensor& x_TC);
  // Adds the gradient of x to dx, which holds that of the path around the norm (zeros where there
  // is none).
  void Backward(Context& ctx, const at::Tensor& dy_TC, at::Tensor& dx_TC);

 private:
  Weight* weight_;
  double epsilon_;
  double offset_;
};

}  // namespace muster::layers
