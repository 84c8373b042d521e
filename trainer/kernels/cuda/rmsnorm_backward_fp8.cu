#include <algorithm>

#include "trainer/kernels/cuda/cluster_rows.cuh"
#include "trainer/kernels/cuda/fp8_cast.h"
#include "trainer/kernels/cuda/rmsnorm_backward.h"
#include "trainer/kernels/cuda/rmsnorm_fp8.h"

namespace muster::kernels::cuda {
namespace {

struct Operands {
  const Bfloat16 *dy, *x, *weight;
  const float* rstd;
  Bfloat16* dx;
  float* partial;  // dweight of each kWarpRows rows, [rows / kWarpRows, columns]
  float offset;
};

// Slots of a thread.
constexpr int kDySlot = 0, kXSlot = kEight, kDxSlot = 2 * kEight, kSlots = 3 * kEight;

// One pass; see ClusterRows.
template <__nv_fp8_interpretation_t kFormat, int kMostThreads, int kBlocks>
__global__ void __launch_bounds__(kMostThreads, kBlocks)
    ClusterKernel(PatchOutput out, Operands of) {
  ClusterRows rows(out.rows);
  const AsyncSlots slots;
  const auto element = [&](bool next, int i) {
    const PatchPlace at = rows.At(next);
    return at.row < 0 ? -1 : (at.row + i) * out.columns + at.column;
  };
  const auto load_inputs = [&](bool next) {
    const int64_t first = element(next, 0);
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
      if (first < 0) break;
      slots.Load(kDySlot + i, of.dy + first + i * out.columns);
      slots.Load(kXSlot + i, of.x + first + i * out.columns);
    }
    AsyncSlots::Commit();
  };
  const auto load_dx = [&](bool next, int i) {
    const int64_t at = element(next, i);
    if (at >= 0) slots.Load(kDxSlot + i, of.dx + at);
  };
  load_inputs(false);
#pragma unroll
  for (int i = 0; i < kEight; ++i) load_dx(false, i);
  AsyncSlots::Commit();

  const float scale = ScaleOf(out.out);
  float largest = 0;
  auto weights = LoadEight<true>(of.weight + rows.At().column, kEight);
  for (; !rows.done(); rows.Next()) {
    const PatchPlace at = rows.At();
    Eight<Bfloat16> dys[kEight], xs[kEight];
    const float rstd_of_lane = of.rstd[rows.row_of_lane()];
    AsyncSlots::Wait<1>();
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
      dys[i] = slots.Take(kDySlot + i);
      xs[i] = slots.Take(kXSlot + i);
    }
    load_inputs(true);
    float dot[kEight] = {};
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
#pragma unroll
      for (int j = 0; j < kEight; ++j) {
        const float gamma = of.offset + ToFloat(weights.element[j]);
        dot[i] += ToFloat(dys[i].element[j]) * gamma * ToFloat(xs[i].element[j]);
      }
    }
    // d(rstd)/dx contributes along x itself: rstd^3 * x * mean(dy * gamma * x).
    const float along_of_lane =
        rows.SumOverRows(dot) * rstd_of_lane * rstd_of_lane / static_cast<float>(out.columns);
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
      KeepPacked(dys[i]);
      KeepPacked(xs[i]);
    }
    KeepPacked(weights);
    AsyncSlots::Wait<1>();
    float dweight[kEight] = {};
    CodesOfEight codes[kEight];
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
      const float rstd = ClusterRows::OfPatchRow(rstd_of_lane, i);
      const float along = ClusterRows::OfPatchRow(along_of_lane, i);
      const Eight<Bfloat16> dxs = slots.Take(kDxSlot + i);
      load_dx(true, i);
      Eight<Bfloat16> result;
      float values[kEight];
#pragma unroll
      for (int j = 0; j < kEight; ++j) {
        const float dy = ToFloat(dys[i].element[j]), x = ToFloat(xs[i].element[j]);
        const float gamma = of.offset + ToFloat(weights.element[j]);
        result.element[j] =
            FromFloat<Bfloat16>(ToFloat(dxs.element[j]) + rstd * (dy * gamma - x * along));
        values[j] = ToFloat(result.element[j]);
        dweight[j] += dy * x * rstd;
      }
      StoreEight<true>(of.dx + (at.row + i) * out.columns + at.column, result, kEight);
      codes[i] = CastEight<kFormat>(values, scale, largest);
    }
    AsyncSlots::Commit();
    StorePatch<true>(out, at.row, at.column, out.columns, codes);
#pragma unroll
    for (int j = 0; j < kEight; ++j) {
      dweight[j] += __shfl_xor_sync(0xffffffff, dweight[j], 8);
      dweight[j] += __shfl_xor_sync(0xffffffff, dweight[j], 16);
    }
    if (threadIdx.x % 32 < 8) {
      float4* const to =
          reinterpret_cast<float4*>(of.partial + rows.tile() * out.columns + at.column);
      to[0] = make_float4(dweight[0], dweight[1], dweight[2], dweight[3]);
      to[1] = make_float4(dweight[4], dweight[5], dweight[6], dweight[7]);
    }
  }
  FinishOutput(out.out, largest);
}

}  // namespace

int64_t RmsNormBackwardFp8Workspace(int64_t rows, int64_t columns) {
  return std::max(RmsNormBackwardWorkspace(columns), rows / kWarpRows * columns);
}

void RmsNormBackwardFp8(const RmsNormShape& shape, const Bfloat16* dy, const Bfloat16* x,
                        const Bfloat16* weight, const float* rstd, Bfloat16* dx, float* dweight,
                        const Fp8Output& dx_fp8, float* workspace, cudaStream_t stream) {
  const PatchOutput out(dx_fp8, shape.rows, shape.columns);
  const ClusterShape cluster(shape.rows, shape.columns);
  const bool aligned = out.aligned && Aligned(dy, 16) && Aligned(x, 16) && Aligned(weight, 16) &&
                       Aligned(dx, 16) && Aligned(workspace, 16);
  if (shape.rows == 0 || cluster.blocks == 0 || !aligned) {
    RmsNormBackward(shape, dy, x, weight, rstd, dx, dweight, workspace, stream);
    CastToFp8(dx, shape.rows, shape.columns, dx_fp8.scale, dx_fp8.format, dx_fp8.codes,
              dx_fp8.transposed, dx_fp8.scale_inv, dx_fp8.amax, stream);
    return;
  }
  const Operands of{dy, x, weight, rstd, dx, workspace, static_cast<float>(shape.offset)};
  const bool e4m3 = dx_fp8.format == fp8::Format::kE4m3;
  auto* const narrow = e4m3 ? ClusterKernel<__NV_E4M3, 256, 2> : ClusterKernel<__NV_E5M2, 256, 2>;
  auto* const wide = e4m3 ? ClusterKernel<__NV_E4M3, 512, 1> : ClusterKernel<__NV_E5M2, 512, 1>;
  LaunchClusters(cluster.warps <= 8 ? narrow : wide, cluster, shape.rows, kSlots, stream, out, of);
  AddColumnSums(shape.rows / kWarpRows, shape.columns, workspace, dweight, stream);
}

}  // namespace muster::kernels::cuda
