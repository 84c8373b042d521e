#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/layers/context.h"
#include "trainer/layers/weight.h"

namespace muster::layers {

// Token ids to rows of the word embedding [V, C].
class Embedding {
 public:
  explicit Embedding(Weight* weight_VC) : weight_(weight_VC) {}

  // tokens: int64, contiguous, T = B * S of them. Throws std::out_of_range for an id outside the
  // vocabulary.
  at::Tensor Forward(Context& ctx, const at::Tensor& tokens_BS);
  void Backward(Context& ctx, const at::Tensor& dy_TC);

 private:
  Weight* weight_;
};

}  // namespace muster::layers
