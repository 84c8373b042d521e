#pragma once

#include <ATen/core/Tensor.h>

namespace muster::optim {

// gradients *= 1 / max(tokens, 1), in the buffer's own type: what turns sums of token losses into
// their mean.
void DivideByTokens(at::Tensor gradients, double tokens);

// Of the elements of a contiguous tensor (fp32, fp64 or bf16), in double; and its root, the L2
// norm.
double SumOfSquares(const at::Tensor& gradients);
double GradientNorm(const at::Tensor& gradients);

// Megatron's: max_norm / (norm + 1e-6) where that is below 1, else 1. `max_norm` 0 means no
// clipping.
double ClipCoefficient(double norm, double max_norm);

}  // namespace muster::optim
