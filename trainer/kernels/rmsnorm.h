#pragma once

#include <cstdint>

#include "trainer/tensor/bfloat16.h"

// Root-mean-square norm over rows of C elements, on raw pointers. T is float, double or Bfloat16;
// sums and the statistics are Accumulate<T>. y = x * rstd * (offset + w), rstd = 1 / sqrt(mean(x^2)
// + epsilon); offset is 1 where weights hold gamma - 1 (--apply-layernorm-1p), else 0.

namespace muster::kernels {

struct RmsNormShape {
  int64_t rows;
  int64_t columns;
  double epsilon;
  double offset;
};

template <typename T>
void RmsNormForward(const RmsNormShape& shape, const T* x, const T* weight, T* y,
                    Accumulate<T>* rstd);

// Adds to dx (which holds the gradient of the residual path) and to dweight.
template <typename T>
void RmsNormBackward(const RmsNormShape& shape, const T* dy, const T* x, const T* weight,
                     const Accumulate<T>* rstd, T* dx, Accumulate<T>* dweight);

}  // namespace muster::kernels
