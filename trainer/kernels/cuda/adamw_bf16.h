#pragma once

#include <cuda_runtime_api.h>

#include "trainer/kernels/adamw_bf16.h"

// With device pointers and a stream. Launch errors are left for cudaGetLastError.

namespace muster::kernels::cuda {

// As trainer/kernels/adamw_bf16.h, in one pass.
template <typename M>
void AdamWBf16(const AdamWRule& rule, int64_t count, const float* grad, float* master, M* exp_avg,
               M* exp_avg_sq, Bfloat16* copy, cudaStream_t stream);

// copy = x, rounded.
void CastToBf16(int64_t count, const float* x, Bfloat16* copy, cudaStream_t stream);

}  // namespace muster::kernels::cuda
