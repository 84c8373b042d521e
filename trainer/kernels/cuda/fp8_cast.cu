#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <algorithm>

#include "trainer/kernels/cuda/fp8_cast.h"

namespace muster::kernels::cuda {
namespace {

// A block casts a tile of kTile x kTile elements; a thread has four rows of four neighbouring
// columns.
constexpr int kTile = 64;
constexpr int kVector = 4;
constexpr int kThreads = (kTile / kVector) * (kTile / kVector);
constexpr int kPitch = kTile + kVector;  // keeps a tile's columns in different shared-memory banks

__device__ float ToFloat(float x) {
  return x;
}
__device__ float ToFloat(Bfloat16 x) {
  return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
}

// Floats without their sign are ordered as their bits are; NaN counts as 0.
__device__ int MagnitudeBits(float x) {
  const int bits = __float_as_int(x) & 0x7fffffff;
  return bits > 0x7f800000 ? 0 : bits;
}

template <typename T>
struct alignas(kVector * sizeof(T)) Vector {
  T element[kVector];
};

// Where a thread's elements lie, and whether they may be moved four at a time.
struct Place {
  int64_t row, column;
  bool whole;
};

template <typename T>
__device__ Vector<T> LoadRow(const T* x, int64_t rows, int64_t columns, const Place& at, int i) {
  const int64_t row = at.row + i;
  if (at.whole) return *reinterpret_cast<const Vector<T>*>(x + row * columns + at.column);
  Vector<T> result;
  for (int j = 0; j < kVector; ++j) {
    const bool inside = row < rows && at.column + j < columns;
    result.element[j] = inside ? x[row * columns + at.column + j] : T{};
  }
  return result;
}

// codes[row * columns + column ...] = four codes, those inside [rows, columns].
__device__ void StoreRow(uint8_t* codes, int64_t rows, int64_t columns, const Place& at, int i,
                         const Vector<uint8_t>& four) {
  const int64_t row = at.row + i;
  if (at.whole) {
    *reinterpret_cast<Vector<uint8_t>*>(codes + row * columns + at.column) = four;
    return;
  }
  for (int j = 0; j < kVector; ++j) {
    if (row < rows && at.column + j < columns) {
      codes[row * columns + at.column + j] = four.element[j];
    }
  }
}

template <typename T, __nv_fp8_interpretation_t kFormat>
__global__ void __launch_bounds__(kThreads)
    CastKernel(const T* x, int64_t rows, int64_t columns, bool aligned, const float* scale,
               uint8_t* codes, uint8_t* transposed, float* scale_inv, float* amax) {
  __shared__ uint8_t tile[kTile][kPitch];
  const int across = threadIdx.x % (kTile / kVector) * kVector;
  const int down = threadIdx.x / (kTile / kVector) * kVector;
  const int64_t tile_row = static_cast<int64_t>(blockIdx.y) * kTile;
  const int64_t tile_column = static_cast<int64_t>(blockIdx.x) * kTile;
  const bool whole = aligned && tile_row + kTile <= rows && tile_column + kTile <= columns;
  const float factor = *scale;

  const Place source{tile_row + down, tile_column + across, whole};
  int largest = 0;
  for (int i = 0; i < kVector; ++i) {
    const Vector<T> four = LoadRow(x, rows, columns, source, i);
    Vector<uint8_t> cast;
    for (int j = 0; j < kVector; ++j) {
      const float value = ToFloat(four.element[j]);
      largest = max(largest, MagnitudeBits(value));
      cast.element[j] = __nv_cvt_float_to_fp8(value * factor, __NV_SATFINITE, kFormat);
    }
    StoreRow(codes, rows, columns, source, i, cast);
    if (transposed != nullptr) *reinterpret_cast<Vector<uint8_t>*>(&tile[down + i][across]) = cast;
  }
  if (amax != nullptr) {
    largest = __reduce_max_sync(0xffffffff, largest);
    // Magnitudes are not negative, so integer order is float order.
    if (threadIdx.x % 32 == 0) atomicMax(reinterpret_cast<int*>(amax), largest);
  }
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *scale_inv = 1.0f / factor;
  if (transposed == nullptr) return;

  __syncthreads();
  const Place target{tile_column + down, tile_row + across, whole};
  for (int i = 0; i < kVector; ++i) {
    Vector<uint8_t> four;
    for (int j = 0; j < kVector; ++j) four.element[j] = tile[across + j][down + i];
    StoreRow(transposed, columns, rows, target, i, four);
  }
}

bool Aligned(const void* pointer, size_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

}  // namespace

template <typename T>
void CastToFp8(const T* x, int64_t rows, int64_t columns, const float* scale, fp8::Format format,
               uint8_t* codes, uint8_t* transposed, float* scale_inv, float* amax,
               cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((std::max<int64_t>(columns, 1) + kTile - 1) / kTile),
                  static_cast<unsigned>((std::max<int64_t>(rows, 1) + kTile - 1) / kTile));
  const bool aligned = columns % kVector == 0 && rows % kVector == 0 &&
                       Aligned(x, kVector * sizeof(T)) && Aligned(codes, kVector) &&
                       Aligned(transposed, kVector);
  auto* const kernel =
      format == fp8::Format::kE4m3 ? CastKernel<T, __NV_E4M3> : CastKernel<T, __NV_E5M2>;
  kernel<<<grid, kThreads, 0, stream>>>(x, rows, columns, aligned, scale, codes, transposed,
                                        scale_inv, amax);
}

template void CastToFp8(const float*, int64_t, int64_t, const float*, fp8::Format, uint8_t*,
                        uint8_t*, float*, float*, cudaStream_t);
template void CastToFp8(const Bfloat16*, int64_t, int64_t, const float*, fp8::Format, uint8_t*,
                        uint8_t*, float*, float*, cudaStream_t);

}  // namespace muster::kernels::cuda
