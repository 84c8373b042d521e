#include "trainer/kernels/cuda/residual_rmsnorm_fp8.h"

#include <cooperative_groups.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "trainer/kernels/cuda/fp8_patch.cuh"

namespace muster::kernels::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kRows = kWarpRows;  // of a cluster
constexpr int kLoads = 4;         // of each operand that a thread has in flight
constexpr int kLoadColumns = 32 * kEight;
constexpr int64_t kSlice = kLoads * kLoadColumns;  // columns of a block, where a cluster reaches
constexpr int64_t kMaxCluster = 8;                 // what every device runs

struct Norm {
  const Bfloat16 *x, *residual, *weight;
  Bfloat16* sum;
  float* rstd;
  int slice;
  float epsilon, offset;
  bool aligned;
};

// sum = x + residual of a block's part of one row, into device and shared memory. The sum of its
// squares, of this lane alone. kWhole: all is aligned, and the row is there.
template <bool kWhole>
__device__ float AddRow(const Norm& norm, const PatchOutput& y, int64_t row, int64_t first,
                        Bfloat16* tile) {
  const int64_t row_start = row * y.columns + first;
  const int64_t row_inside = kWhole || row < y.rows ? y.columns - first : 0;
  const bool adds = norm.residual != nullptr;
  float squares = 0;
  for (int start = threadIdx.x % 32 * kEight; start < norm.slice; start += kLoads * kLoadColumns) {
    Eight<Bfloat16> x[kLoads] = {}, residual[kLoads] = {};
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int column = start + i * kLoadColumns;
      const int64_t inside = row_inside - column;
      if (column < norm.slice && inside > 0) {
        x[i] = LoadEight<kWhole>(norm.x + row_start + column, inside);
        if (adds) residual[i] = LoadEight<kWhole>(norm.residual + row_start + column, inside);
      }
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int column = start + i * kLoadColumns;
      if (column >= norm.slice) break;
      Eight<Bfloat16> sums = x[i];
#pragma unroll
      for (int j = 0; j < kEight; ++j) {
        const float sum = ToFloat(x[i].element[j]) + ToFloat(residual[i].element[j]);
        if (adds) sums.element[j] = FromFloat<Bfloat16>(sum);
        squares += ToFloat(sums.element[j]) * ToFloat(sums.element[j]);
      }
      *reinterpret_cast<Eight<Bfloat16>*>(tile + column) = sums;
      const int64_t inside = row_inside - column;
      if (inside > 0) StoreEight<kWhole>(norm.sum + row_start + column, sums, inside);
    }
  }
  return squares;
}

// A patch of y, from the sums in shared memory. The largest magnitude in it.
template <__nv_fp8_interpretation_t kFormat, bool kWhole>
__device__ int CastPatch(const Norm& norm, const PatchOutput& y, const PatchPlace& at,
                         const Bfloat16* sums, const float* rstd) {
  const float scale = *y.out.scale;
  const auto weights = LoadEight<kWhole>(norm.weight + at.column, y.columns - at.column);
  int largest = 0;
  CodesOfEight codes[kEight];
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    const auto row = *reinterpret_cast<const Eight<Bfloat16>*>(sums + i * norm.slice);
    float values[kEight];
#pragma unroll
    for (int j = 0; j < kEight; ++j) {
      values[j] =
          ToFloat(row.element[j]) * rstd[i] * (norm.offset + ToFloat(weights.element[j]));
    }
    codes[i] = CastEight<kFormat>(values, scale, largest);
  }
  StorePatch<kWhole>(y, at.row, at.column, y.columns, codes);
  return largest;
}

template <__nv_fp8_interpretation_t kFormat>
__global__ void __launch_bounds__(kThreads, 3) NormKernel(PatchOutput y, Norm norm) {
  extern __shared__ __align__(16) unsigned char shared[];
  Bfloat16* const tile = reinterpret_cast<Bfloat16*>(shared);  // [kRows, slice]
  __shared__ float squares[kRows];                             // of this block's slice
  __shared__ float rstd[kRows];
  const auto cluster = cooperative_groups::this_cluster();
  const unsigned blocks = cluster.num_blocks();
  const int64_t row = static_cast<int64_t>(blockIdx.x / blocks) * kRows;
  const int64_t first = static_cast<int64_t>(cluster.block_rank()) * norm.slice;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  for (int r = warp; r < kRows; r += kWarps) {
    Bfloat16* const sums = tile + r * norm.slice;
    const bool whole = norm.aligned && row + r < y.rows;
    const float sum = WarpSum(whole ? AddRow<true>(norm, y, row + r, first, sums)
                                    : AddRow<false>(norm, y, row + r, first, sums));
    if (lane == 0) squares[r] = sum;
  }
  cluster.sync();
  if (threadIdx.x < kRows) {
    float sum = 0;
    for (unsigned block = 0; block < blocks; ++block) {
      sum += *cluster.map_shared_rank(squares + threadIdx.x, block);
    }
    const float scale = 1 / sqrtf(sum / static_cast<float>(y.columns) + norm.epsilon);
    rstd[threadIdx.x] = scale;
    if (cluster.block_rank() == 0 && row + threadIdx.x < y.rows) {
      norm.rstd[row + threadIdx.x] = scale;
    }
  }
  cluster.sync();  // `rstd` is there; and no block ends while another reads its `squares`

  const int top = lane / 8 * kEight;
  int largest = 0;
  for (int column = warp * kWarpColumns + lane % 8 * kEight; column < norm.slice;
       column += kWarps * kWarpColumns) {
    const PatchPlace at{row + top, first + column};
    const Bfloat16* const sums = tile + top * norm.slice + column;
    const bool whole = norm.aligned && y.aligned && at.IsWhole(y.rows, y.columns);
    largest = max(largest, whole ? CastPatch<kFormat, true>(norm, y, at, sums, rstd + top)
                                 : CastPatch<kFormat, false>(norm, y, at, sums, rstd + top));
  }
  FinishOutput(y.out, largest);
}

}  // namespace

void ResidualRmsNormFp8(const RmsNormShape& shape, const Bfloat16* x, const Bfloat16* residual,
                        const Bfloat16* weight, Bfloat16* sum, float* rstd, const Fp8Output& y,
                        cudaStream_t stream) {
  if (shape.columns > kMaxNormColumns) {
    throw std::invalid_argument("RMSNorm of rows of " + std::to_string(shape.columns) +
                                " elements: the CUDA kernel takes up to " +
                                std::to_string(kMaxNormColumns));
  }
  const int64_t cluster =
      std::clamp<int64_t>((shape.columns + kSlice - 1) / kSlice, 1, kMaxCluster);
  const int64_t share = std::max<int64_t>((shape.columns + cluster - 1) / cluster, 1);
  const int64_t slice = (share + kWarpColumns - 1) / kWarpColumns * kWarpColumns;
  Norm norm{x, residual, weight, sum, rstd, static_cast<int>(slice), 0, 0, false};
  norm.epsilon = static_cast<float>(shape.epsilon);
  norm.offset = static_cast<float>(shape.offset);
  norm.aligned = shape.columns % kEight == 0 && Aligned(x, 16) && Aligned(residual, 16) &&
                 Aligned(weight, 16) && Aligned(sum, 16);
  const PatchOutput out(y, shape.rows, shape.columns);

  auto* const kernel = y.format == fp8::Format::kE4m3 ? NormKernel<__NV_E4M3> : NormKernel<__NV_E5M2>;
  const size_t bytes = static_cast<size_t>(slice) * kRows * sizeof(Bfloat16);
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(bytes));
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
  cudaLaunchConfig_t config{};
  const int64_t clusters = std::max<int64_t>((shape.rows + kRows - 1) / kRows, 1);
  config.gridDim = dim3(static_cast<unsigned>(clusters * cluster));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, kernel, out, norm);
}

}  // namespace muster::kernels::cuda
