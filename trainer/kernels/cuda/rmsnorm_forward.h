#pragma once

#include <cuda_runtime_api.h>

#include "trainer/kernels/rmsnorm.h"

namespace muster::kernels::cuda {

// kernels::RmsNormForward with device pointers and a stream: y in bf16, for products that are not
// FP8. Rows of any width; launch errors are left for cudaGetLastError.
void RmsNormForward(const RmsNormShape& shape, const Bfloat16* x, const Bfloat16* weight,
                    Bfloat16* y, float* rstd, cudaStream_t stream);

}  // namespace muster::kernels::cuda
