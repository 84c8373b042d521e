#include <cfloat>

#include "trainer/kernels/cuda/current_scaling.h"

namespace muster::kernels::cuda {
namespace {

__global__ void ScaleKernel(float fp8_max, float* amax, float* scale) {
  const float largest = *amax;
  const float ratio = fp8_max / largest;
  *scale = !isfinite(largest) || largest == 0 ? 1.0f : isinf(ratio) ? FLT_MAX : ratio;
  *amax = 0;
}

}  // namespace

void TakeCurrentScale(fp8::Format format, float* amax, float* scale, cudaStream_t stream) {
  ScaleKernel<<<1, 1, 0, stream>>>(fp8::MaxFinite(format), amax, scale);
}

}  // namespace muster::kernels::cuda
