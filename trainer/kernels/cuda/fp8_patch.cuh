#pragma once

#include <cuda_fp8.h>

#include <cstdint>

#include "trainer/kernels/cuda/vectors.cuh"
#include "trainer/kernels/fp8_output.h"

// Device code that writes an Fp8Output. A thread has a patch of 8 x 8 elements, a warp 4 x 8
// patches: its stores fill whole 32-byte sectors both of the codes and, turned in registers, of
// the transposed codes. A block of kPatchThreads has kBlockRows x kBlockColumns elements, so that
// it writes whole cache lines of both.

namespace muster::kernels::cuda {

constexpr int kWarpRows = 32, kWarpColumns = 64;
constexpr int kPatchThreads = 256;
constexpr int kBlockRows = 128, kBlockColumns = 128;

// An Fp8Output as kernels take it.
struct PatchOutput {
  Fp8Output out;
  int64_t rows, columns;
  bool aligned;  // codes and transposed codes may be stored 8 at a time

  PatchOutput(const Fp8Output& output, int64_t y_rows, int64_t y_columns)
      : out(output),
        rows(y_rows),
        columns(y_columns),
        aligned(y_columns % kEight == 0 && y_rows % kEight == 0 && Aligned(output.codes, kEight) &&
                Aligned(output.transposed, kEight)) {}
};

// What codes are scaled by; 1 when none are wanted.
__device__ inline float ScaleOf(const Fp8Output& out) {
  return out.scale != nullptr ? *out.scale : 1.0f;
}

// The codes of eight neighbouring elements of a row, two words of four.
struct CodesOfEight {
  uint32_t word[2];
};

template <__nv_fp8_interpretation_t kFormat>
__device__ CodesOfEight CastEight(const float (&values)[kEight], float scale, float& largest) {
  CodesOfEight result;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float* four = values + 4 * half;
#pragma unroll
    for (int i = 0; i < 4; ++i) largest = fmaxf(largest, fabsf(four[i]));  // not of a NaN
    const uint32_t low = __nv_cvt_float2_to_fp8x2(make_float2(four[0] * scale, four[1] * scale),
                                                  __NV_SATFINITE, kFormat);
    const uint32_t high = __nv_cvt_float2_to_fp8x2(make_float2(four[2] * scale, four[3] * scale),
                                                   __NV_SATFINITE, kFormat);
    result.word[half] = low | high << 16;
  }
  return result;
}

template <bool kWhole>
__device__ void StoreCodes(uint8_t* codes, const uint32_t (&word)[2], int64_t inside) {
  if constexpr (kWhole) {
    *reinterpret_cast<uint2*>(codes) = make_uint2(word[0], word[1]);
  } else {
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
      if (i < inside) codes[i] = static_cast<uint8_t>(word[i / 4] >> 8 * (i % 4));
    }
  }
}

// Bytes i of four words, turned into word i.
__device__ inline void Transpose4x4(uint32_t a, uint32_t b, uint32_t c, uint32_t d,
                                    uint32_t (&turned)[4]) {
  const uint32_t ab_low = __byte_perm(a, b, 0x5140), ab_high = __byte_perm(a, b, 0x7362);
  const uint32_t cd_low = __byte_perm(c, d, 0x5140), cd_high = __byte_perm(c, d, 0x7362);
  turned[0] = __byte_perm(ab_low, cd_low, 0x5410);
  turned[1] = __byte_perm(ab_low, cd_low, 0x7632);
  turned[2] = __byte_perm(ab_high, cd_high, 0x5410);
  turned[3] = __byte_perm(ab_high, cd_high, 0x7632);
}

// Writes the patch whose first element is (row, column), as far as it lies before `end_column`.
// kWhole: it all does, and y is aligned.
template <bool kWhole>
__device__ void StorePatch(const PatchOutput& y, int64_t row, int64_t column, int64_t end_column,
                           const CodesOfEight (&codes)[kEight]) {
  const int64_t columns_inside = end_column - column, rows_inside = y.rows - row;
  if (y.out.codes != nullptr) {
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
      if (kWhole || i < rows_inside) {
        StoreCodes<kWhole>(y.out.codes + (row + i) * y.columns + column, codes[i].word,
                           columns_inside);
      }
    }
  }
  if (y.out.transposed == nullptr) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    uint32_t top[4], bottom[4];
    Transpose4x4(codes[0].word[half], codes[1].word[half], codes[2].word[half], codes[3].word[half],
                 top);
    Transpose4x4(codes[4].word[half], codes[5].word[half], codes[6].word[half], codes[7].word[half],
                 bottom);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int across = 4 * half + i;
      const uint32_t word[2] = {top[i], bottom[i]};
      if (kWhole || across < columns_inside) {
        StoreCodes<kWhole>(y.out.transposed + (column + across) * y.rows + row, word, rows_inside);
      }
    }
  }
}

// At the end of a kernel: all threads of the block give the largest magnitude that they saw.
// Magnitudes are not negative, so the order of their bits is theirs.
__device__ inline void FinishOutput(const Fp8Output& out, float of_thread) {
  if (out.amax != nullptr) {
    int largest = __reduce_max_sync(0xffffffff, __float_as_int(of_thread));
    __shared__ int of_warps[32];
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = largest;
    __syncthreads();
    if (threadIdx.x < 32) {
      const int mine = threadIdx.x < blockDim.x / 32 ? of_warps[threadIdx.x] : 0;
      largest = __reduce_max_sync(0xffffffff, mine);
      if (threadIdx.x == 0) atomicMax(reinterpret_cast<int*>(out.amax), largest);
    }
  }
  if (blockIdx.x == 0 && threadIdx.x == 0 && out.scale_inv != nullptr) {
    *out.scale_inv = 1.0f / *out.scale;
  }
}

// Where the patch of a thread lies in a grid of blocks that covers [rows, columns] row by row.
// Later rows come first: the product before has written them last, so that they may still be in the
// L2 cache.
struct PatchPlace {
  int64_t row, column;

  __device__ bool IsWhole(int64_t rows, int64_t columns) const {
    return row + kEight <= rows && column + kEight <= columns;
  }
};
__device__ inline PatchPlace PlaceOfPatch(int64_t columns) {
  const int64_t across = (columns + kBlockColumns - 1) / kBlockColumns;
  const int64_t block = gridDim.x - 1 - blockIdx.x;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  return {block / across * kBlockRows + warp / 2 * kWarpRows + lane / 8 * kEight,
          block % across * kBlockColumns + warp % 2 * kWarpColumns + lane % 8 * kEight};
}
// Whether every thread of the grid over [rows, columns] has a whole patch: then a kernel without
// code for ragged edges will do, which needs fewer registers.
inline bool AllWhole(int64_t rows, int64_t columns, bool aligned) {
  return aligned && rows % kBlockRows == 0 && columns % kBlockColumns == 0;
}
inline unsigned PatchBlocks(int64_t rows, int64_t columns) {
  const int64_t down = (rows + kBlockRows - 1) / kBlockRows;
  const int64_t across = (columns + kBlockColumns - 1) / kBlockColumns;
  return static_cast<unsigned>(down * across > 0 ? down * across : 1);
}

}  // namespace muster::kernels::cuda
