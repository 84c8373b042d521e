#pragma once

#include <cuda_runtime_api.h>

#include "trainer/kernels/residual_rmsnorm_fp8.h"

namespace muster::kernels::cuda {

// Widest row that ResidualRmsNormFp8 takes.
constexpr int64_t kMaxNormColumns = 25600;

// As trainer/kernels/residual_rmsnorm_fp8.h, with device pointers and a stream, in one pass: rows
// wait in the shared memory of a cluster of blocks between their sum of squares and their cast.
// Throws std::invalid_argument for rows wider than kMaxNormColumns; launch errors are left for
// cudaGetLastError.
void ResidualRmsNormFp8(const RmsNormShape& shape, const Bfloat16* x, const Bfloat16* residual,
                        const Bfloat16* weight, Bfloat16* sum, float* rstd, const Fp8Output& y,
                        cudaStream_t stream);

}  // namespace muster::kernels::cuda
