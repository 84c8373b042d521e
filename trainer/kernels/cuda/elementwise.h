#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trainer/tensor/bfloat16.h"

// Launch errors are left for cudaGetLastError.

namespace muster::kernels::cuda {

void Fill(int64_t count, float value, float* out, cudaStream_t stream);
// x *= factor.
void Scale(int64_t count, float factor, float* x, cudaStream_t stream);
void Scale(int64_t count, float factor, Bfloat16* x, cudaStream_t stream);

}  // namespace muster::kernels::cuda
