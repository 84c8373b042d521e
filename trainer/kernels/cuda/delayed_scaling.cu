#include <cfloat>
#include <cmath>

#include "trainer/kernels/cuda/delayed_scaling.h"

namespace muster::kernels::cuda {
namespace {

constexpr int kThreads = 128;

// One block rolls the history of one tensor, kThreads rows at a time: all are read before any is
// overwritten, and the next rows to read lie behind those already written.
__global__ void __launch_bounds__(kThreads)
    UpdateKernel(int64_t history_len, bool most_recent, float fp8_max, int64_t count,
                 const float* reduced_amax, float* scale, float* history) {
  __shared__ float warp_largest[kThreads / 32];
  const int64_t tensor = blockIdx.x;
  const int64_t last = history_len - 1;
  const float amax = reduced_amax[tensor] != 0 ? reduced_amax[tensor] : history[tensor];
  if (amax == 0) return;  // the same for the whole block
  float used = amax;
  for (int64_t start = 0; start < last; start += kThreads) {
    const int64_t row = start + threadIdx.x;
    const float older = row < last ? history[(row + 1) * count + tensor] : 0;
    __syncthreads();
    if (row < last) history[row * count + tensor] = older;
    if (!most_recent && row < last) used = fmaxf(used, older);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    used = fmaxf(used, __shfl_xor_sync(0xffffffff, used, offset));
  }
  if (threadIdx.x % 32 == 0) warp_largest[threadIdx.x / 32] = used;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (const float largest : warp_largest) used = fmaxf(used, largest);
  history[last * count + tensor] = amax;
  history[tensor] = 0;
  if (!isfinite(used) || used <= 0) return;
  const float ratio = fp8_max / used;
  scale[tensor] = isinf(ratio) ? FLT_MAX : ratio;
}

}  // namespace

void UpdateDelayed(const fp8::DelayedRule& rule, int64_t count, const float* reduced_amax,
                   float* scale, float* history, cudaStream_t stream) {
  if (count == 0) return;
  const float fp8_max = std::ldexp(fp8::MaxFinite(rule.format), -rule.margin);
  UpdateKernel<<<static_cast<unsigned>(count), kThreads, 0, stream>>>(
      rule.history_len, rule.algo == config::AmaxAlgo::kMostRecent, fp8_max, count, reduced_amax,
      scale, history);
}

}  // namespace muster::kernels::cuda
