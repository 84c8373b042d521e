#pragma once

#include <cstdint>

#include "trainer/kernels/fp8_output.h"
#include "trainer/kernels/rmsnorm.h"
#include "trainer/tensor/bfloat16.h"

namespace muster::kernels {

// sum = x + residual (bf16: the residual stream, which the backward needs; may be either input),
// then y = its RMSNorm (see rmsnorm.h) in FP8, taken of the rounded sum. A null residual counts as
// 0, a null sum is not wanted. rstd: [rows].
void ResidualRmsNormFp8(const RmsNormShape& shape, const Bfloat16* x, const Bfloat16* residual,
                        const Bfloat16* weight, Bfloat16* sum, float* rstd, const Fp8Output& y);

// The same with y in bf16.
void ResidualRmsNorm(const RmsNormShape& shape, const Bfloat16* x, const Bfloat16* residual,
                     const Bfloat16* weight, Bfloat16* sum, float* rstd, Bfloat16* y);

}  // namespace muster::kernels
