#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trainer/fp8/scaling.h"

namespace muster::kernels::cuda {

// fp8::UpdateDelayed on the GPU, with device pointers: one launch for all tensors of a direction.
// Launch errors are left for cudaGetLastError.
void UpdateDelayed(const fp8::DelayedRule& rule, int64_t count, const float* reduced_amax,
                   float* scale, float* history, cudaStream_t stream);

}  // namespace muster::kernels::cuda
