#pragma once

#include <cuda_runtime_api.h>

#include "trainer/kernels/rope_packed.h"

// Rotary positions on packed rows on the GPU: as trainer/kernels/rope_packed.h, with device
// pointers and a stream, each in one pass. Launch errors are left for cudaGetLastError.

namespace muster::kernels::cuda {

void RopePacked(const QkvShape& shape, const float* cos, const float* sin, Bfloat16* qkv,
                cudaStream_t stream);

void RopePackedGradient(const QkvShape& shape, const float* cos, const float* sin, Bfloat16* dqkv,
                        cudaStream_t stream);

void RopePackedGradientFp8(const QkvShape& shape, const float* cos, const float* sin,
                           const Bfloat16* dqkv, const Fp8Output& out, cudaStream_t stream);

}  // namespace muster::kernels::cuda
