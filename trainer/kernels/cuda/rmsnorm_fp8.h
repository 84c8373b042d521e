#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trainer/kernels/rmsnorm_fp8.h"

// RMSNorm between bf16 and FP8 on the GPU: as trainer/kernels/rmsnorm_fp8.h, with device pointers
// and a stream. One pass over the operands where a cluster of blocks can hold rows (multiples of 32
// rows, of 64 columns, up to 8192 or so of them), else two. Launch errors are left for
// cudaGetLastError.

namespace muster::kernels::cuda {

void RmsNormFp8(const RmsNormShape& shape, const Bfloat16* x, const Bfloat16* weight, float* rstd,
                const Fp8Output& y, cudaStream_t stream);

// How many floats of workspace RmsNormBackwardFp8 needs on the current device.
int64_t RmsNormBackwardFp8Workspace(int64_t rows, int64_t columns);

// dweight is the same in each run. Throws std::invalid_argument for rows that RmsNormBackward
// doesn't take either.
void RmsNormBackwardFp8(const RmsNormShape& shape, const Bfloat16* dy, const Bfloat16* x,
                        const Bfloat16* weight, const float* rstd, Bfloat16* dx, float* dweight,
                        const Fp8Output& dx_fp8, float* workspace, cudaStream_t stream);

}  // namespace muster::kernels::cuda
