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
constexpr int kLoadColumns = 32 * kEight;
constexpr int64_t kMaxCluster = 8;  // what every device runs
// Columns of a block: the first for rows that a cluster covers so, the second for wider ones.
constexpr int kSlice = 2 * kLoadColumns, kWideSlice = 2 * kSlice;

struct Norm {
  const Bfloat16 *x, *residual, *weight;
  Bfloat16* sum;
  float* rstd;
  int slice;
  float epsilon, offset;
};

// sum = x + residual of a block's part of kAtOnce rows, kWarps apart, into device and shared
// memory, and the sums of the squares of each; kLoads times 16 bytes of each row are in flight.
template <bool kWhole, int kAtOnce, int kLoads>
__device__ void AddRows(const Norm& norm, const PatchOutput& y, int slice, int64_t top,
                        int row_in_tile, int64_t first, Bfloat16* tile, float* squares) {
  const bool adds = norm.residual != nullptr;
  const int lane = threadIdx.x % 32;
  const int64_t origin = (top + row_in_tile) * y.columns + first;
  const int64_t row_step = kWarps * y.columns;
  float sums[kAtOnce] = {};
#pragma unroll 1
  for (int start = lane * kEight; start < slice; start += kLoads * kLoadColumns) {
    Eight<Bfloat16> x[kAtOnce][kLoads], residual[kAtOnce][kLoads];
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r) {
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        const int column = start + i * kLoadColumns;
        const int64_t at = origin + r * row_step + column;
        const int64_t inside =
            top + row_in_tile + r * kWarps < y.rows ? y.columns - first - column : 0;
        x[r][i] = LoadEight<kWhole>(norm.x + at, inside);
        residual[r][i] = adds ? LoadEight<kWhole>(norm.residual + at, inside) : Eight<Bfloat16>{};
      }
    }
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r) {
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        const int column = start + i * kLoadColumns;
        const int64_t inside =
            top + row_in_tile + r * kWarps < y.rows ? y.columns - first - column : 0;
        Eight<Bfloat16> added;
#pragma unroll
        for (int j = 0; j < kEight; ++j) {
          const float sum = ToFloat(x[r][i].element[j]) + ToFloat(residual[r][i].element[j]);
          added.element[j] = adds ? FromFloat<Bfloat16>(sum) : x[r][i].element[j];
          sums[r] += ToFloat(added.element[j]) * ToFloat(added.element[j]);
        }
        Bfloat16* const waiting = tile + (row_in_tile + r * kWarps) * slice + column;
        *reinterpret_cast<Eight<Bfloat16>*>(waiting) = added;
        if (norm.sum != nullptr) {
          StoreEight<kWhole>(norm.sum + origin + r * row_step + column, added, inside);
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kAtOnce; ++r) {
    const float sum = WarpSum(sums[r]);
    if (lane == 0) squares[row_in_tile + r * kWarps] = sum;
  }
}

// A patch of y, from the sums in shared memory. The largest magnitude in it.
template <__nv_fp8_interpretation_t kFormat, bool kWhole>
__device__ int CastPatch(const Norm& norm, const PatchOutput& y, const PatchPlace& at, int slice,
                         const Bfloat16* sums, const float* rstd) {
  const float scale = ScaleOf(y.out);
  const auto weights = LoadEight<kWhole>(norm.weight + at.column, y.columns - at.column);
  int largest = 0;
  CodesOfEight codes[kEight];
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    const auto row = *reinterpret_cast<const Eight<Bfloat16>*>(sums + i * slice);
    float values[kEight];
#pragma unroll
    for (int j = 0; j < kEight; ++j) {
      values[j] = ToFloat(row.element[j]) * rstd[i] * (norm.offset + ToFloat(weights.element[j]));
    }
    codes[i] = CastEight<kFormat>(values, scale, largest);
  }
  StorePatch<kWhole>(y, at.row, at.column, y.columns, codes);
  return largest;
}

// kConstSlice: all is aligned, rows and columns are multiples of a block's, and this is the slice:
// a constant makes addresses cheap. 0: nothing of that.
template <__nv_fp8_interpretation_t kFormat, int kConstSlice>
__global__ void __launch_bounds__(kThreads, kConstSlice == kSlice ? 4 : 2)
    NormKernel(PatchOutput y, Norm norm) {
  extern __shared__ __align__(16) unsigned char shared[];
  Bfloat16* const tile = reinterpret_cast<Bfloat16*>(shared);  // [kRows, slice]
  __shared__ float squares[kRows];                             // of this block's slice
  __shared__ float rstd[kRows];
  const auto cluster = cooperative_groups::this_cluster();
  const unsigned blocks = cluster.num_blocks();
  constexpr bool kWhole = kConstSlice > 0;
  const int slice = kWhole ? kConstSlice : norm.slice;
  const int64_t row = static_cast<int64_t>(blockIdx.x / blocks) * kRows;
  const int64_t first = static_cast<int64_t>(cluster.block_rank()) * slice;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  if constexpr (kWhole) {
    for (int r = warp; r < kRows; r += kWarps) {
      AddRows<true, 1, 2>(norm, y, slice, row, r, first, tile, squares);
    }
  } else {
    for (int r = warp; r < kRows; r += kWarps) {
      AddRows<false, 1, 1>(norm, y, slice, row, r, first, tile, squares);
    }
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
  for (int column = warp * kWarpColumns + lane % 8 * kEight; column < slice;
       column += kWarps * kWarpColumns) {
    const PatchPlace at{row + top, first + column};
    const Bfloat16* const sums = tile + top * slice + column;
    largest = max(largest, CastPatch<kFormat, kWhole>(norm, y, at, slice, sums, rstd + top));
  }
  FinishOutput(y.out, largest);
}

template <__nv_fp8_interpretation_t kFormat>
auto* ChooseKernel(bool whole, bool narrow) {
  if (!whole) return NormKernel<kFormat, 0>;
  return narrow ? NormKernel<kFormat, kSlice> : NormKernel<kFormat, kWideSlice>;
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
  const int64_t reach = shape.columns > kMaxCluster * kSlice ? kWideSlice : kSlice;
  const int64_t cluster = std::clamp<int64_t>((shape.columns + reach - 1) / reach, 1, kMaxCluster);
  const int64_t share = std::max<int64_t>((shape.columns + cluster - 1) / cluster, 1);
  const int64_t slice = (share + kLoadColumns - 1) / kLoadColumns * kLoadColumns;
  Norm norm{x, residual, weight, sum, rstd, static_cast<int>(slice), 0, 0};
  norm.epsilon = static_cast<float>(shape.epsilon);
  norm.offset = static_cast<float>(shape.offset);
  const PatchOutput out(y, shape.rows, shape.columns);
  const bool aligned = out.aligned && Aligned(x, 16) && Aligned(residual, 16) &&
                       Aligned(weight, 16) && Aligned(sum, 16);
  const bool whole = aligned && shape.rows % kRows == 0 && shape.columns == cluster * slice &&
                     (slice == kSlice || slice == kWideSlice);
  auto* const kernel = y.format == fp8::Format::kE4m3
                           ? ChooseKernel<__NV_E4M3>(whole, slice == kSlice)
                           : ChooseKernel<__NV_E5M2>(whole, slice == kSlice);
  const size_t bytes = static_cast<size_t>(slice * kRows) * sizeof(Bfloat16);
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
