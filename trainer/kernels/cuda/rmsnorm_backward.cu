#include "trainer/kernels/cuda/rmsnorm_backward.h"

#include <stdexcept>
#include <string>

#include "trainer/kernels/cuda/device.h"
#include "trainer/kernels/cuda/vectors.cuh"

namespace muster::kernels::cuda {
namespace {

constexpr int kThreads = 512, kWarps = kThreads / 32;
constexpr int64_t kColumnsAtOnce = kThreads * kEight;

// Blocks that share a multiprocessor: some load while others wait for the sum over their row.
constexpr int BlocksOf(int vectors) {
  return vectors == 1 ? 2 : 1;
}

struct Operands {
  const Bfloat16 *dy, *x, *weight;
  const float* rstd;
  Bfloat16* dx;
  float* partial;  // dweight of each block, [blocks, columns]
  int64_t rows, columns;
  float offset;
};

// Each block takes every gridDim-th row, one at a time.
template <bool kWhole, int kVectors>
__global__ void __launch_bounds__(kThreads, BlocksOf(kVectors)) BackwardKernel(Operands of) {
  __shared__ float of_warps[2][kWarps];
  Eight<Bfloat16> weights[kVectors] = {};
  float dweight[kVectors][kEight] = {};
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int64_t column = threadIdx.x * kEight + v * kColumnsAtOnce;
    if (column < of.columns) {
      weights[v] = LoadEight<kWhole>(of.weight + column, of.columns - column);
    }
  }
  int buffer = 0;
  for (int64_t row = blockIdx.x; row < of.rows; row += gridDim.x, buffer ^= 1) {
    Eight<Bfloat16> dys[kVectors] = {}, xs[kVectors] = {}, dxs[kVectors] = {};
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const int64_t column = threadIdx.x * kEight + v * kColumnsAtOnce;
      const int64_t inside = of.columns - column, at = row * of.columns + column;
      if (inside <= 0) continue;
      dys[v] = LoadEight<kWhole>(of.dy + at, inside);
      xs[v] = LoadEight<kWhole>(of.x + at, inside);
      dxs[v] = LoadEight<kWhole>(of.dx + at, inside);
    }
    const float scale = of.rstd[row];
    float dot = 0;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
#pragma unroll
      for (int j = 0; j < kEight; ++j) {
        const float gamma = of.offset + ToFloat(weights[v].element[j]);
        dot += ToFloat(dys[v].element[j]) * gamma * ToFloat(xs[v].element[j]);
      }
    }
    dot = WarpSum(dot);
    if (threadIdx.x % 32 == 0) of_warps[buffer][threadIdx.x / 32] = dot;
    __syncthreads();  // once a row: the other buffer is free again by the next one
    dot = 0;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) dot += of_warps[buffer][warp];

    // d(rstd)/dx contributes along x itself: rstd^3 * x * mean(dy * gamma * x).
    const float along = dot * scale * scale / static_cast<float>(of.columns);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const int64_t column = threadIdx.x * kEight + v * kColumnsAtOnce;
      Eight<Bfloat16> result;
#pragma unroll
      for (int j = 0; j < kEight; ++j) {
        const float dy = ToFloat(dys[v].element[j]), x = ToFloat(xs[v].element[j]);
        const float gamma = of.offset + ToFloat(weights[v].element[j]);
        result.element[j] =
            FromFloat<Bfloat16>(ToFloat(dxs[v].element[j]) + scale * (dy * gamma - x * along));
        dweight[v][j] += dy * x * scale;
      }
      if (column < of.columns) {
        StoreEight<kWhole>(of.dx + row * of.columns + column, result, of.columns - column);
      }
    }
  }
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
#pragma unroll
    for (int j = 0; j < kEight; ++j) {
      const int64_t column = threadIdx.x * kEight + v * kColumnsAtOnce + j;
      if (column < of.columns) of.partial[blockIdx.x * of.columns + column] = dweight[v][j];
    }
  }
}

constexpr int kSumColumns = 32, kSumRows = 16;

__global__ void __launch_bounds__(kSumColumns* kSumRows)
    SumKernel(const float* partial, int64_t blocks, int64_t columns, float* dweight) {
  __shared__ float part[kSumRows][kSumColumns];
  const int across = threadIdx.x % kSumColumns, down = threadIdx.x / kSumColumns;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kSumColumns + across;
  float sum = 0;
  if (column < columns) {
    for (int64_t block = down; block < blocks; block += kSumRows) {
      sum += partial[block * columns + column];
    }
  }
  part[down][across] = sum;
  __syncthreads();
  if (down != 0 || column >= columns) return;
  sum = 0;
  for (int row = 0; row < kSumRows; ++row) sum += part[row][across];
  dweight[column] += sum;
}

int Vectors(int64_t columns) {
  return columns <= kColumnsAtOnce ? 1 : columns <= 2 * kColumnsAtOnce ? 2 : 4;
}

int Blocks(int64_t columns) {
  return BlocksOf(Vectors(columns)) * Multiprocessors();
}

template <int kVectors>
void Launch(const Operands& of, bool whole, cudaStream_t stream) {
  auto* const kernel = whole ? BackwardKernel<true, kVectors> : BackwardKernel<false, kVectors>;
  kernel<<<static_cast<unsigned>(Blocks(of.columns)), kThreads, 0, stream>>>(of);
}

}  // namespace

int64_t RmsNormBackwardWorkspace(int64_t columns) {
  return Blocks(columns) * columns;
}

void AddColumnSums(int64_t rows, int64_t columns, const float* x, float* sums,
                   cudaStream_t stream) {
  const int64_t blocks = (columns + kSumColumns - 1) / kSumColumns;
  SumKernel<<<static_cast<unsigned>(blocks), kSumColumns * kSumRows, 0, stream>>>(x, rows, columns,
                                                                                  sums);
}

void RmsNormBackward(const RmsNormShape& shape, const Bfloat16* dy, const Bfloat16* x,
                     const Bfloat16* weight, const float* rstd, Bfloat16* dx, float* dweight,
                     float* workspace, cudaStream_t stream) {
  if (shape.columns > kMaxNormBackwardColumns) {
    throw std::invalid_argument(
        "gradient of RMSNorm over rows of " + std::to_string(shape.columns) +
        " elements: the CUDA kernel takes up to " + std::to_string(kMaxNormBackwardColumns));
  }
  if (shape.columns == 0) return;
  const Operands of{dy,
                    x,
                    weight,
                    rstd,
                    dx,
                    workspace,
                    shape.rows,
                    shape.columns,
                    static_cast<float>(shape.offset)};
  const bool whole = shape.columns % kEight == 0 && Aligned(dy, 16) && Aligned(x, 16) &&
                     Aligned(weight, 16) && Aligned(dx, 16);
  const int vectors = Vectors(shape.columns);
  if (vectors == 1) Launch<1>(of, whole, stream);
  if (vectors == 2) Launch<2>(of, whole, stream);
  if (vectors == 4) Launch<4>(of, whole, stream);
  AddColumnSums(Blocks(shape.columns), shape.columns, workspace, dweight, stream);
}

}  // namespace muster::kernels::cuda
