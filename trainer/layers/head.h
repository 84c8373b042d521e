#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/kernels/cross_entropy.h"
#include "trainer/layers/context.h"
#include "trainer/layers/weight.h"

namespace muster::layers {

// Language-model head and loss in one: logits = x w^T (never FP8), then masked cross entropy. The
// logits of only a few tokens exist at a time, and their gradient replaces them in place; so the
// forward already computes the gradients.
class Head {
 public:
  // `weight_VC`: the output layer's, or the word embedding's when they are tied.
  explicit Head(Weight* weight_VC) : weight_(weight_VC) {}

  at::Tensor Logits(Context& ctx, const at::Tensor& x_TC);

  // Sum of the unmasked tokens' losses. labels int64, mask fp32, both contiguous [B, S]. In
  // training adds to the weight's gradient. Throws std::out_of_range for an unmasked label outside
  // the vocabulary.
  kernels::CrossEntropySum Forward(Context& ctx, const at::Tensor& x_TC,
                                   const at::Tensor& labels_BS, const at::Tensor& mask_BS);
  // Gradient of x for the sum of losses.
  at::Tensor Backward(Context& ctx) { return ctx.Restore(); }

 private:
  Weight* weight_;
};

}  // namespace muster::layers
