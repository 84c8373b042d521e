#pragma once

#include <cstdint>

#include "trainer/kernels/fp8_output.h"
#include "trainer/tensor/bfloat16.h"

namespace muster::kernels {

// One step of AdamW with decoupled weight decay: m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
// p -= lr * ((m / c1) / (sqrt(v / c2) + epsilon) + weight_decay * p), with g = grad * *clip *
// *inverse_tokens. All in fp32.
struct AdamWRule {
  float lr, weight_decay, beta1, beta2, epsilon;
  float correction1, correction2;  // 1 - beta^t
  const float* clip;               // clip coefficient; null: 1
  const float* inverse_tokens;     // 1 / (tokens of the gradient); null: 1
};

// A step on a weight [rows, columns] whose master copy is fp32, and that copy's cast to FP8. G, the
// gradient, and M, the moments, are float or Bfloat16 (rounded to nearest when stored; the step
// uses them unrounded).
template <typename G, typename M>
void AdamWFp8(const AdamWRule& rule, int64_t rows, int64_t columns, const G* grad, float* master,
              M* exp_avg, M* exp_avg_sq, const Fp8Output& weight);

// The sum of the squares of grad, in double, added to *sum.
template <typename G>
void AddSquares(int64_t count, const G* grad, double* sum);

}  // namespace muster::kernels
