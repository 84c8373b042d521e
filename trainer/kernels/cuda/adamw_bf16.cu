#include "trainer/kernels/cuda/adamw_bf16.h"

#include "trainer/kernels/cuda/vectors.cuh"

namespace muster::kernels::cuda {
namespace {

constexpr int kThreads = 256;

unsigned Blocks(int64_t count) {
  return static_cast<unsigned>((count + kThreads * kEight - 1) / (kThreads * kEight));
}

template <typename M, bool kWhole>
__device__ void Step(const AdamWRule& rule, int64_t at, int64_t inside, const float* grad,
                     float* master, M* exp_avg, M* exp_avg_sq, Bfloat16* copy) {
  const float grad_scale = (rule.clip != nullptr ? *rule.clip : 1.0f) *
                           (rule.inverse_tokens != nullptr ? *rule.inverse_tokens : 1.0f);
  const auto grads = LoadEight<kWhole>(grad + at, inside);
  auto weights = LoadEight<kWhole>(master + at, inside);
  auto firsts = LoadEight<kWhole>(exp_avg + at, inside);
  auto seconds = LoadEight<kWhole>(exp_avg_sq + at, inside);
  Eight<Bfloat16> rounded;
#pragma unroll
  for (int j = 0; j < kEight; ++j) {
    const float g = grads.element[j] * grad_scale;
    const float m = rule.beta1 * ToFloat(firsts.element[j]) + (1 - rule.beta1) * g;
    const float v = rule.beta2 * ToFloat(seconds.element[j]) + (1 - rule.beta2) * g * g;
    const float update = (m / rule.correction1) / (sqrtf(v / rule.correction2) + rule.epsilon);
    weights.element[j] -= rule.lr * (update + rule.weight_decay * weights.element[j]);
    firsts.element[j] = FromFloat<M>(m);
    seconds.element[j] = FromFloat<M>(v);
    rounded.element[j] = FromFloat<Bfloat16>(weights.element[j]);
  }
  StoreEight<kWhole>(master + at, weights, inside);
  StoreEight<kWhole>(exp_avg + at, firsts, inside);
  StoreEight<kWhole>(exp_avg_sq + at, seconds, inside);
  StoreEight<kWhole>(copy + at, rounded, inside);
}

template <typename M>
__global__ void __launch_bounds__(kThreads)
    StepKernel(AdamWRule rule, int64_t count, bool aligned, const float* grad, float* master,
               M* exp_avg, M* exp_avg_sq, Bfloat16* copy) {
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kEight;
  if (at >= count) return;
  if (aligned && at + kEight <= count) {
    Step<M, true>(rule, at, kEight, grad, master, exp_avg, exp_avg_sq, copy);
  } else {
    Step<M, false>(rule, at, count - at, grad, master, exp_avg, exp_avg_sq, copy);
  }
}

__global__ void __launch_bounds__(kThreads)
    CastKernel(int64_t count, bool aligned, const float* x, Bfloat16* copy) {
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kEight;
  if (at >= count) return;
  const bool whole = aligned && at + kEight <= count;
  const auto values =
      whole ? LoadEight<true>(x + at, kEight) : LoadEight<false>(x + at, count - at);
  Eight<Bfloat16> rounded;
#pragma unroll
  for (int j = 0; j < kEight; ++j) rounded.element[j] = FromFloat<Bfloat16>(values.element[j]);
  if (whole) {
    StoreEight<true>(copy + at, rounded, kEight);
  } else {
    StoreEight<false>(copy + at, rounded, count - at);
  }
}

}  // namespace

template <typename M>
void AdamWBf16(const AdamWRule& rule, int64_t count, const float* grad, float* master, M* exp_avg,
               M* exp_avg_sq, Bfloat16* copy, cudaStream_t stream) {
  if (count == 0) return;
  const bool aligned = Aligned(grad, 16) && Aligned(master, 16) && Aligned(exp_avg, 16) &&
                       Aligned(exp_avg_sq, 16) && Aligned(copy, 16);
  StepKernel<M><<<Blocks(count), kThreads, 0, stream>>>(rule, count, aligned, grad, master, exp_avg,
                                                        exp_avg_sq, copy);
}

void CastToBf16(int64_t count, const float* x, Bfloat16* copy, cudaStream_t stream) {
  if (count == 0) return;
  CastKernel<<<Blocks(count), kThreads, 0, stream>>>(count, Aligned(x, 16) && Aligned(copy, 16), x,
                                                     copy);
}

template void AdamWBf16(const AdamWRule&, int64_t, const float*, float*, float*, float*, Bfloat16*,
                        cudaStream_t);
template void AdamWBf16(const AdamWRule&, int64_t, const float*, float*, Bfloat16*, Bfloat16*,
                        Bfloat16*, cudaStream_t);

}  // namespace muster::kernels::cuda
