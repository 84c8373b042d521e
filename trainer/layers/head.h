#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/kernels/cross_entropy.h"
#include "trainer/layers/context.h"
#include "trainer/layers/weight.h"

namespace muster::layers {

// What the loss of a micro-batch is taken of: int64 labels and fp32 mask, both contiguous [B, S].
struct Targets {
  at::Tensor labels_BS, mask_BS;
  double weight = 1;  // of the micro-batch in the gradients (not in the sums)
};

// Language-model head and loss in one: logits = x w^T (never FP8), then masked cross entropy. The
// logits of only a few tokens exist at a time, and their gradient replaces them in place; so the
// forward already computes the gradients. Tensor-parallel ranks have the logits of V / size
// consecutive rows of w each, which never leave them: only maxima and sums of tokens do.
class Head {
 public:
  // `weight_VC`: the output layer's, or the word embedding's when they are tied.
  explicit Head(Weight* weight_VC) : weight_(weight_VC) {}

  // Of this rank's rows.
  at::Tensor Logits(Context& ctx, const at::Tensor& x_TC);

  // Sum of the unmasked tokens' losses, the same on all tensor-parallel ranks. In training adds to
  // the weight's gradient. Throws std::out_of_range for an unmasked label outside the vocabulary.
  kernels::CrossEntropySum Forward(Context& ctx, const at::Tensor& x_TC, const Targets& targets);
  // Gradient of x for the sum of losses.
  at::Tensor Backward(Context& ctx) { return ctx.tensor().Leave(ctx.Restore()); }

 private:
  Weight* weight_;
};

}  // namespace muster::layers
