#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

#include "trainer/layers/context.h"
#include "trainer/layers/linear.h"

namespace muster::layers {

// fc2(silu(gate) * up) with [gate; up] = fc1, one linear.
class Mlp {
 public:
  Mlp(Linear fc1, Linear fc2) : fc1_(std::move(fc1)), fc2_(std::move(fc2)) {}

  void Invalidate();
  at::Tensor Forward(Context& ctx, const at::Tensor& x_TC);
  at::Tensor Backward(Context& ctx, const at::Tensor& dy_TC);

 private:
  Linear fc1_;
  Linear fc2_;
};

}  // namespace muster::layers
