#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trainer/fp8/formats.h"
#include "trainer/tensor/bfloat16.h"

// Casts to FP8 on the GPU: as trainer/kernels/fp8_cast.h, with device pointers and a stream. Launch
// errors are left for cudaGetLastError.

namespace muster::kernels::cuda {

// One pass over x [rows, columns]: codes = saturating cast of x * *scale (product in fp32),
// *scale_inv = 1 / *scale. Unless null, `transposed` [columns, rows] gets the same codes transposed
// (what Hopper's TN-only GEMMs need) and *amax becomes the larger of itself and the largest |x|
// (NaN ignored). A null `scale`, with codes, transposed and scale_inv null too: *amax alone. T:
// float or Bfloat16.
template <typename T>
void CastToFp8(const T* x, int64_t rows, int64_t columns, const float* scale, fp8::Format format,
               uint8_t* codes, uint8_t* transposed, float* scale_inv, float* amax,
               cudaStream_t stream);

}  // namespace muster::kernels::cuda
