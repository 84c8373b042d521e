#include "trainer/kernels/cuda/elementwise.h"

#include "trainer/kernels/cuda/vectors.cuh"

namespace muster::kernels::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) FillKernel(int64_t count, float value, float* out) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at < count) out[at] = value;
}

template <typename T>
__global__ void __launch_bounds__(kThreads) ScaleKernel(int64_t count, float factor, T* x) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at < count) x[at] = FromFloat<T>(ToFloat(x[at]) * factor);
}

unsigned Blocks(int64_t count) {
  return static_cast<unsigned>((count + kThreads - 1) / kThreads);
}

}  // namespace

void Fill(int64_t count, float value, float* out, cudaStream_t stream) {
  if (count > 0) FillKernel<<<Blocks(count), kThreads, 0, stream>>>(count, value, out);
}

void Scale(int64_t count, float factor, float* x, cudaStream_t stream) {
  if (count > 0) ScaleKernel<<<Blocks(count), kThreads, 0, stream>>>(count, factor, x);
}

void Scale(int64_t count, float factor, Bfloat16* x, cudaStream_t stream) {
  if (count > 0) ScaleKernel<<<Blocks(count), kThreads, 0, stream>>>(count, factor, x);
}

}  // namespace muster::kernels::cuda
