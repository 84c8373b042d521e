#pragma once

#include <cstdint>

#include "trainer/fp8/cuda/gemm_spec.h"
#include "trainer/fp8/formats.h"

// The three products of a linear layer y = x w^T: T tokens, N outputs, K inputs; y and dx are bf16,
// the gradient of the weight is added to the main gradient (fp32 or bf16).

namespace muster::fp8::cuda {

struct LinearShape {
  int64_t tokens, outputs, inputs;
};

// Which products sum with fast accumulation. The reference recipes: forward only.
struct FastAccumulation {
  bool forward = true;
  bool input_gradient = false;
  bool weight_gradient = false;
};

struct LinearGemms {
  GemmSpec forward;          // y [T, N] = x * w^T
  GemmSpec input_gradient;   // dx [T, K] = dy * w
  GemmSpec weight_gradient;  // dw [N, K] += dy^T * x
};

// In FP8: x and w are e4m3, dy is `gradient`. Operands (left, right) as stored:
//   forward          x [T, K], w [N, K]
//   input_gradient   dy [T, N], w transposed [K, N]
//   weight_gradient  dy transposed [N, T], x transposed [K, T]
LinearGemms Fp8LinearGemms(const LinearShape& shape, Format gradient, FastAccumulation fast,
                           ElementType main_gradient);

// In bf16 (the LM head, and models without FP8), without any transposed copy. Operands (left,
// right): x, w; dy, w; dy, x; each as it is.
LinearGemms Bf16LinearGemms(const LinearShape& shape, ElementType main_gradient);

}  // namespace muster::fp8::cuda
