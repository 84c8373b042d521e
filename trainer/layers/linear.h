#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "trainer/layers/context.h"
#include "trainer/layers/weight.h"

namespace muster::layers {

// y = x w^T, without bias; in FP8 when the model has a recipe. T tokens, N outputs, K inputs.
class Linear {
 public:
  // `number`: of this linear in the recipe.
  Linear(Weight* weight_NK, int64_t number) : weight_(weight_NK), number_(number) {}

  // The weight has changed: the next use in training quantises it anew, later ones reuse that.
  void Invalidate() { stale_ = true; }

  at::Tensor Forward(Context& ctx, const at::Tensor& x_TK);
  // Adds to the weight's gradient.
  at::Tensor Backward(Context& ctx, const at::Tensor& dy_TN);

 private:
  fp8::QuantizedTensor QuantizedWeight(const Context& ctx);

  Weight* weight_;
  int64_t number_;
  bool stale_ = true;
  fp8::QuantizedTensor quantized_;
};

// dw += dy^T x on operands in any one type; dw is fp32 (fp64 for fp64 operands) or bf16.
void AddWeightGradient(const at::Tensor& dy_TN, const at::Tensor& x_TK, at::Tensor dw_NK);

}  // namespace muster::layers
