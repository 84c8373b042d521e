#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/layers/context.h"
#include "trainer/layers/weight.h"

namespace muster::layers {

// Token ids to rows of the word embedding [V, C]. Tensor-parallel ranks have V / size consecutive
// rows each; the other tokens count as 0 before the ranks' results are summed.
class Embedding {
 public:
  // `vocab_size`: rows of all ranks.
  Embedding(Weight* weight_VC, int64_t vocab_size) : weight_(weight_VC), vocab_size_(vocab_size) {}

  // tokens: int64, contiguous, T = B * S of them. Throws std::out_of_range for an id outside the
  // vocabulary.
  at::Tensor Forward(Context& ctx, const at::Tensor& tokens_BS);
  void Backward(Context& ctx, const at::Tensor& dy_TC);

 private:
  Weight* weight_;
  int64_t vocab_size_;
};

}  // namespace muster::layers
