#pragma once

#include <cuda_runtime_api.h>

#include "trainer/fp8/formats.h"

namespace muster::kernels::cuda {

// *scale = fp8::CurrentScale(*amax, format), then *amax = 0, ready for the next tensor. Device
// pointers; launch errors are left for cudaGetLastError.
void TakeCurrentScale(fp8::Format format, float* amax, float* scale, cudaStream_t stream);

}  // namespace muster::kernels::cuda
