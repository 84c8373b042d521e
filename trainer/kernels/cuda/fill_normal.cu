#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <algorithm>

#include "trainer/kernels/cuda/fill_normal.h"

namespace muster::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 4096;

// SplitMix64: 64 well mixed bits of a counter.
__device__ uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Box-Muller on the two halves.
__device__ float Normal(uint64_t bits) {
  const float u = (static_cast<float>(bits >> 40) + 0.5f) * 0x1p-24f;
  const float v = static_cast<float>(bits & 0xffffff) * 0x1p-24f;
  return sqrtf(-2 * logf(u)) * cospif(2 * v);
}

template <typename T, typename Convert>
__global__ void __launch_bounds__(kThreads)
    FillKernel(T* data, int64_t count, float standard_deviation, uint64_t seed, Convert convert) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += step) {
    data[i] = convert(Normal(Mix(Mix(seed) + i)) * standard_deviation);
  }
}

template <typename T, typename Convert>
void Fill(T* data, int64_t count, float standard_deviation, uint64_t seed, Convert convert,
          cudaStream_t stream) {
  if (count == 0) return;
  const int64_t blocks = std::min(kMaxBlocks, (count + kThreads - 1) / kThreads);
  FillKernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
      data, count, standard_deviation, seed, convert);
}

struct ToFloat {
  __device__ float operator()(float x) const { return x; }
};
struct ToBfloat16 {
  __device__ Bfloat16 operator()(float x) const {
    Bfloat16 result;
    result.bits = __bfloat16_as_ushort(__float2bfloat16_rn(x));
    return result;
  }
};
template <__nv_fp8_interpretation_t kFormat>
struct ToFp8 {
  __device__ uint8_t operator()(float x) const {
    return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, kFormat);
  }
};

}  // namespace

void FillNormal(float* data, int64_t count, float standard_deviation, uint64_t seed,
                cudaStream_t stream) {
  Fill(data, count, standard_deviation, seed, ToFloat(), stream);
}

void FillNormal(Bfloat16* data, int64_t count, float standard_deviation, uint64_t seed,
                cudaStream_t stream) {
  Fill(data, count, standard_deviation, seed, ToBfloat16(), stream);
}

void FillNormal(uint8_t* codes, fp8::Format format, int64_t count, float standard_deviation,
                uint64_t seed, cudaStream_t stream) {
  if (format == fp8::Format::kE4m3) {
    Fill(codes, count, standard_deviation, seed, ToFp8<__NV_E4M3>(), stream);
  } else {
    Fill(codes, count, standard_deviation, seed, ToFp8<__NV_E5M2>(), stream);
  }
}

}  // namespace muster::kernels::cuda
