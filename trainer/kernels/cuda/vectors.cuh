#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "trainer/tensor/bfloat16.h"

// Device code that the fused kernels share: loads and stores of eight neighbouring elements, and
// sums over a warp.

namespace muster::kernels::cuda {

constexpr int kEight = 8;

// Eight neighbouring elements, moved 16 bytes at a time.
template <typename T>
struct alignas(16) Eight {
  T element[kEight];
};

__device__ inline float ToFloat(float x) {
  return x;
}
__device__ inline float ToFloat(Bfloat16 x) {
  return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
}
template <typename T>
__device__ T FromFloat(float x);
template <>
__device__ inline float FromFloat<float>(float x) {
  return x;
}
template <>
__device__ inline Bfloat16 FromFloat<Bfloat16>(float x) {
  Bfloat16 result;
  result.bits = __bfloat16_as_ushort(__float2bfloat16_rn(x));
  return result;
}

// x[0 .. 8). kWhole: all of them exist and x is aligned. Else the first `inside` exist, and the
// rest is 0. Code for whole data has no branch between its loads, so that many are in flight.
template <bool kWhole, typename T>
__device__ Eight<T> LoadEight(const T* x, int64_t inside) {
  if constexpr (kWhole) {
    return *reinterpret_cast<const Eight<T>*>(x);
  } else {
    Eight<T> result;
#pragma unroll
    for (int i = 0; i < kEight; ++i) result.element[i] = i < inside ? x[i] : T{};
    return result;
  }
}

template <bool kWhole, typename T>
__device__ void StoreEight(T* x, const Eight<T>& values, int64_t inside) {
  if constexpr (kWhole) {
    *reinterpret_cast<Eight<T>*>(x) = values;
  } else {
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
      if (i < inside) x[i] = values.element[i];
    }
  }
}

// Makes the compiler forget what it knows about packed elements: else it keeps them unpacked, in
// twice the registers, from one use to the next.
__device__ inline void KeepPacked(Eight<Bfloat16>& values) {
  auto* const word = reinterpret_cast<uint32_t*>(values.element);
  asm volatile("" : "+r"(word[0]), "+r"(word[1]), "+r"(word[2]), "+r"(word[3]));
}

// The sum over a warp, the same in each lane and in each run.
__device__ inline float WarpSum(float x) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(0xffffffff, x, offset);
  return x;
}

inline bool Aligned(const void* pointer, uintptr_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

}  // namespace muster::kernels::cuda
