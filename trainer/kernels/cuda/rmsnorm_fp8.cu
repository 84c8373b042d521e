#include "trainer/kernels/cuda/rmsnorm_fp8.h"

#include "trainer/kernels/cuda/cluster_rows.cuh"

namespace muster::kernels::cuda {
namespace {

struct Norm {
  const Bfloat16 *x, *weight;
  float* rstd;
  float epsilon, offset;

  __device__ float Rstd(float squares, int64_t columns) const {
    return 1 / sqrtf(squares / static_cast<float>(columns) + epsilon);
  }
};

template <bool kWhole>
__device__ void LoadPatch(const Bfloat16* x, int64_t rows, int64_t columns, const PatchPlace& at,
                          Eight<Bfloat16> (&patch)[kEight]) {
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    const int64_t inside = at.row + i < rows ? columns - at.column : 0;
    patch[i] = LoadEight<kWhole>(x + (at.row + i) * columns + at.column, inside);
  }
}

// A patch of y. The largest magnitude in it.
template <__nv_fp8_interpretation_t kFormat, bool kWhole>
__device__ float CastPatch(const Norm& norm, const PatchOutput& y, const PatchPlace& at,
                           const Eight<Bfloat16> (&x)[kEight], const float (&rstd)[kEight]) {
  const float scale = ScaleOf(y.out);
  const auto weights = LoadEight<kWhole>(norm.weight + at.column, y.columns - at.column);
  float largest = 0;
  CodesOfEight codes[kEight];
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    float values[kEight];
#pragma unroll
    for (int j = 0; j < kEight; ++j) {
      values[j] = ToFloat(x[i].element[j]) * rstd[i] * (norm.offset + ToFloat(weights.element[j]));
    }
    codes[i] = CastEight<kFormat>(values, scale, largest);
  }
  StorePatch<kWhole>(y, at.row, at.column, y.columns, codes);
  return largest;
}

// One pass; see ClusterRows.
template <__nv_fp8_interpretation_t kFormat, int kMostThreads, int kBlocks>
__global__ void __launch_bounds__(kMostThreads, kBlocks) ClusterKernel(PatchOutput y, Norm norm) {
  ClusterRows rows(y.rows);
  const AsyncSlots slots;
  const auto load = [&](bool next) {
    const PatchPlace at = rows.At(next);
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
      if (at.row >= 0) slots.Load(i, norm.x + (at.row + i) * y.columns + at.column);
    }
    AsyncSlots::Commit();
  };
  load(false);
  float largest = 0;
  for (; !rows.done(); rows.Next()) {
    AsyncSlots::Wait<0>();
    Eight<Bfloat16> x[kEight];
#pragma unroll
    for (int i = 0; i < kEight; ++i) x[i] = slots.Take(i);
    load(true);
    float squares[kEight] = {};
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
#pragma unroll
      for (int j = 0; j < kEight; ++j) {
        squares[i] += ToFloat(x[i].element[j]) * ToFloat(x[i].element[j]);
      }
    }
    const float rstd_of_lane = norm.Rstd(rows.SumOverRows(squares), y.columns);
    if (rows.first_warp()) norm.rstd[rows.row_of_lane()] = rstd_of_lane;
    float rstd[kEight];
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
      KeepPacked(x[i]);
      rstd[i] = ClusterRows::OfPatchRow(rstd_of_lane, i);
    }
    largest = fmaxf(largest, CastPatch<kFormat, true>(norm, y, rows.At(), x, rstd));
  }
  FinishOutput(y.out, largest);
}

// Two passes, for any shape: first one block for each row.
__global__ void __launch_bounds__(kPatchThreads) RstdKernel(Norm norm, int64_t columns) {
  __shared__ float of_warps[kPatchThreads / 32];
  const Bfloat16* const row = norm.x + blockIdx.x * columns;
  float squares = 0;
  for (int64_t i = threadIdx.x; i < columns; i += kPatchThreads) {
    squares += ToFloat(row[i]) * ToFloat(row[i]);
  }
  squares = WarpSum(squares);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = squares;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 1; warp < kPatchThreads / 32; ++warp) squares += of_warps[warp];
  norm.rstd[blockIdx.x] = norm.Rstd(squares, columns);
}

template <__nv_fp8_interpretation_t kFormat>
__global__ void __launch_bounds__(kPatchThreads) CastKernel(PatchOutput y, Norm norm) {
  const PatchPlace at = PlaceOfPatch(y.columns);
  Eight<Bfloat16> x[kEight];
  LoadPatch<false>(norm.x, y.rows, y.columns, at, x);
  float rstd[kEight];
#pragma unroll
  for (int i = 0; i < kEight; ++i) rstd[i] = at.row + i < y.rows ? norm.rstd[at.row + i] : 0;
  FinishOutput(y.out, CastPatch<kFormat, false>(norm, y, at, x, rstd));
}

}  // namespace

void RmsNormFp8(const RmsNormShape& shape, const Bfloat16* x, const Bfloat16* weight, float* rstd,
                const Fp8Output& y, cudaStream_t stream) {
  if (shape.rows == 0 || shape.columns == 0) return;
  const Norm norm{x, weight, rstd, static_cast<float>(shape.epsilon),
                  static_cast<float>(shape.offset)};
  const PatchOutput out(y, shape.rows, shape.columns);
  const bool e4m3 = y.format == fp8::Format::kE4m3;
  const ClusterShape cluster(shape.rows, shape.columns);
  if (cluster.blocks > 0 && out.aligned && Aligned(x, 16) && Aligned(weight, 16)) {
    auto* const narrow = e4m3 ? ClusterKernel<__NV_E4M3, 256, 4> : ClusterKernel<__NV_E5M2, 256, 4>;
    auto* const wide = e4m3 ? ClusterKernel<__NV_E4M3, 512, 2> : ClusterKernel<__NV_E5M2, 512, 2>;
    LaunchClusters(cluster.warps <= 8 ? narrow : wide, cluster, shape.rows, kEight, stream, out,
                   norm);
    return;
  }
  RstdKernel<<<static_cast<unsigned>(shape.rows), kPatchThreads, 0, stream>>>(norm, shape.columns);
  auto* const kernel = e4m3 ? CastKernel<__NV_E4M3> : CastKernel<__NV_E5M2>;
  kernel<<<PatchBlocks(shape.rows, shape.columns), kPatchThreads, 0, stream>>>(out, norm);
}

}  // namespace muster::kernels::cuda
