#pragma once

#include <vector>

#include "trainer/device/block.h"
#include "trainer/device/linear.h"

namespace muster::device {

// Final norm, LM head (bf16) and loss. The logits of `head_tokens` tokens at most exist at a time;
// their gradient replaces them in place, so the forward of a training step already makes the
// gradients.
class Head {
 public:
  // `weight`: the output layer's, or the word embedding's when they are tied.
  Head(Ops* ops, const Shape& shape, const Workspace* workspace, const Weight* norm,
       const Weight* weight);

  void Plan(Planner& planner);
  void AppendProducts(std::vector<fp8::cuda::GemmSpec>& specs) const;

  // Where the residual stream is left for it.
  Bfloat16* input() const { return input_; }
  // From the input to the loss: sums[0] += sum of losses, sums[1] += tokens. In training adds to
  // the gradients of norm (by Backward) and weight.
  void Forward(const int64_t* labels, const float* mask, Pass pass, double* sums);
  // Sets workspace.gradient to that of the residual stream, also as `consumer` takes it.
  Operand Backward(const StreamGradient& gradient, int64_t consumer);

 private:
  Ops* ops_;
  const Shape shape_;
  const Workspace& ws_;
  const Weight* norm_;
  int64_t chunks_;
  Linear linear_;
  Bfloat16 *input_ = nullptr, *normed_ = nullptr, *dnormed_ = nullptr, *logits_ = nullptr;
  float *rstd_ = nullptr, *losses_ = nullptr;
};

}  // namespace muster::device
