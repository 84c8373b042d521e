#pragma once

#include <cuda_runtime_api.h>

#include "trainer/kernels/residual_rmsnorm_fp8.h"

namespace muster::kernels::cuda {

// kernels::ResidualRmsNorm with device pointers and a stream: y in bf16, for products that are not
// FP8. Rows of any width; launch errors are left for cudaGetLastError.
void ResidualRmsNorm(const RmsNormShape& shape, const Bfloat16* x, const Bfloat16* residual,
                     const Bfloat16* weight, Bfloat16* sum, float* rstd, Bfloat16* y,
                     cudaStream_t stream);

}  // namespace muster::kernels::cuda
