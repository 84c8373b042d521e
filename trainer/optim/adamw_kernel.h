#pragma once

#include <cstdint>

#include "trainer/tensor/bfloat16.h"

// The arithmetic of one optimizer step on raw pointers, without LibTorch.

namespace muster::optim {

struct AdamWStep {
  double lr;
  double weight_decay;
  double beta1;
  double beta2;
  double epsilon;
  double correction1;  // 1 - beta1^t
  double correction2;  // 1 - beta2^t
  double grad_scale;   // applied to each gradient first, in the state's precision
};

// m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  p -= lr * ((m / c1) / (sqrt(v / c2) + eps) + wd
// * p). P: float or double; G: P or Bfloat16.
template <typename P, typename G>
void ApplyAdamW(const AdamWStep& step, int64_t count, const G* grad, P* value, P* exp_avg,
                P* exp_avg_sq);

// Sum of squares, in double.
template <typename G>
double SumOfSquares(int64_t count, const G* grad);

}  // namespace muster::optim
