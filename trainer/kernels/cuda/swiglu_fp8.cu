#include "trainer/kernels/cuda/swiglu_fp8.h"

#include "trainer/kernels/cuda/fp8_patch.cuh"

namespace muster::kernels::cuda {
namespace {

__device__ float Sigmoid(float x) {
  return __fdividef(1.0f, 1.0f + __expf(-x));
}

template <__nv_fp8_interpretation_t kFormat>
__global__ void __launch_bounds__(kPatchThreads, 2)
    ForwardKernel(PatchOutput y, const Bfloat16* gate_up, bool aligned) {
  const PatchPlace at = PlaceOfPatch(y.columns);
  const float scale = *y.out.scale;
  const int64_t inside = y.columns - at.column;
  const bool whole = aligned && inside >= kEight;
  int largest = 0;
  Eight<Bfloat16> gates[kEight], ups[kEight];
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    const bool row_inside = at.row + i < y.rows;
    const Bfloat16* gate = gate_up + (at.row + i) * 2 * y.columns + at.column;
    gates[i] = LoadEight(gate, whole && row_inside, row_inside ? inside : 0);
    ups[i] = LoadEight(gate + y.columns, whole && row_inside, row_inside ? inside : 0);
  }
  CodesOfEight codes[kEight];
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    float values[kEight];
#pragma unroll
    for (int j = 0; j < kEight; ++j) {
      const float gate = ToFloat(gates[i].element[j]);
      values[j] = gate * Sigmoid(gate) * ToFloat(ups[i].element[j]);
    }
    codes[i] = CastEight<kFormat>(values, scale, largest);
  }
  StorePatch(y, at.row, at.column, y.columns, codes);
  FinishOutput(y.out, largest);
}

// y: dgate_up, with 2 * ffn columns. A thread writes a patch of dgate and the same one of dup,
// `ffn` columns further to the right.
template <__nv_fp8_interpretation_t kFormat>
__global__ void __launch_bounds__(kPatchThreads, 2)
    BackwardKernel(PatchOutput y, int64_t ffn, const Bfloat16* dy, const Bfloat16* gate_up,
                   bool aligned) {
  const PatchPlace at = PlaceOfPatch(ffn);
  const float scale = *y.out.scale;
  const int64_t inside = ffn - at.column;
  const bool whole = aligned && inside >= kEight;
  int largest = 0;
  CodesOfEight dgates[kEight], dups[kEight];
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    const bool row_inside = at.row + i < y.rows;
    const bool load_whole = whole && row_inside;
    const int64_t row_columns = row_inside ? inside : 0;
    const Bfloat16* gate_row = gate_up + (at.row + i) * 2 * ffn + at.column;
    const auto grads = LoadEight(dy + (at.row + i) * ffn + at.column, load_whole, row_columns);
    const auto gates = LoadEight(gate_row, load_whole, row_columns);
    const auto ups = LoadEight(gate_row + ffn, load_whole, row_columns);
    float dgate[kEight], dup[kEight];
#pragma unroll
    for (int j = 0; j < kEight; ++j) {
      const float gate = ToFloat(gates.element[j]), grad = ToFloat(grads.element[j]);
      const float sigmoid = Sigmoid(gate);
      dgate[j] = grad * ToFloat(ups.element[j]) * sigmoid * (1 + gate * (1 - sigmoid));
      dup[j] = grad * gate * sigmoid;
    }
    dgates[i] = CastEight<kFormat>(dgate, scale, largest);
    dups[i] = CastEight<kFormat>(dup, scale, largest);
  }
  StorePatch(y, at.row, at.column, ffn, dgates);
  StorePatch(y, at.row, ffn + at.column, 2 * ffn, dups);
  FinishOutput(y.out, largest);
}

}  // namespace

void SwigluForwardFp8(int64_t rows, int64_t ffn, const Bfloat16* gate_up, const Fp8Output& y,
                      cudaStream_t stream) {
  const bool aligned = ffn % kEight == 0 && Aligned(gate_up, 16);
  auto* const kernel =
      y.format == fp8::Format::kE4m3 ? ForwardKernel<__NV_E4M3> : ForwardKernel<__NV_E5M2>;
  kernel<<<PatchBlocks(rows, ffn), kPatchThreads, 0, stream>>>(PatchOutput(y, rows, ffn), gate_up,
                                                               aligned);
}

void SwigluBackwardFp8(int64_t rows, int64_t ffn, const Bfloat16* dy, const Bfloat16* gate_up,
                       const Fp8Output& dgate_up, cudaStream_t stream) {
  const bool aligned = ffn % kEight == 0 && Aligned(dy, 16) && Aligned(gate_up, 16);
  PatchOutput out(dgate_up, rows, 2 * ffn);
  out.aligned = out.aligned && ffn % kEight == 0;
  auto* const kernel =
      dgate_up.format == fp8::Format::kE4m3 ? BackwardKernel<__NV_E4M3> : BackwardKernel<__NV_E5M2>;
  kernel<<<PatchBlocks(rows, ffn), kPatchThreads, 0, stream>>>(out, ffn, dy, gate_up, aligned);
}

}  // namespace muster::kernels::cuda
