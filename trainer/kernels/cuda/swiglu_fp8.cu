#include "trainer/kernels/cuda/swiglu_fp8.h"

#include "trainer/kernels/cuda/fp8_patch.cuh"

namespace muster::kernels::cuda {
namespace {

__device__ float Sigmoid(float x) {
  return __fdividef(1.0f, 1.0f + __expf(-x));
}

// A patch of y. The largest magnitude in it.
template <__nv_fp8_interpretation_t kFormat, bool kWhole>
__device__ int ForwardPatch(const PatchOutput& y, const Bfloat16* gate_up, const PatchPlace& at) {
  Eight<Bfloat16> gates[kEight], ups[kEight];
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    const int64_t inside = at.row + i < y.rows ? y.columns - at.column : 0;
    const Bfloat16* gate = gate_up + (at.row + i) * 2 * y.columns + at.column;
    gates[i] = LoadEight<kWhole>(gate, inside);
    ups[i] = LoadEight<kWhole>(gate + y.columns, inside);
  }
  const float scale = *y.out.scale;
  int largest = 0;
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
  StorePatch<kWhole>(y, at.row, at.column, y.columns, codes);
  return largest;
}

template <__nv_fp8_interpretation_t kFormat>
__global__ void __launch_bounds__(kPatchThreads, 3)
    ForwardKernel(PatchOutput y, const Bfloat16* gate_up, bool aligned) {
  const PatchPlace at = PlaceOfPatch(y.columns);
  const bool whole = aligned && at.IsWhole(y.rows, y.columns);
  FinishOutput(y.out, whole ? ForwardPatch<kFormat, true>(y, gate_up, at)
                            : ForwardPatch<kFormat, false>(y, gate_up, at));
}

// A patch of dgate and the same one of dup, `ffn` columns further to the right in y.
template <__nv_fp8_interpretation_t kFormat, bool kWhole>
__device__ int BackwardPatch(const PatchOutput& y, int64_t ffn, const Bfloat16* dy,
                             const Bfloat16* gate_up, const PatchPlace& at) {
  const float scale = *y.out.scale;
  int largest = 0;
  CodesOfEight dgates[kEight], dups[kEight];
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    const int64_t inside = at.row + i < y.rows ? ffn - at.column : 0;
    const Bfloat16* gate_row = gate_up + (at.row + i) * 2 * ffn + at.column;
    const auto grads = LoadEight<kWhole>(dy + (at.row + i) * ffn + at.column, inside);
    const auto gates = LoadEight<kWhole>(gate_row, inside);
    const auto ups = LoadEight<kWhole>(gate_row + ffn, inside);
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
  StorePatch<kWhole>(y, at.row, at.column, ffn, dgates);
  StorePatch<kWhole>(y, at.row, ffn + at.column, 2 * ffn, dups);
  return largest;
}

template <__nv_fp8_interpretation_t kFormat>
__global__ void __launch_bounds__(kPatchThreads, 2)
    BackwardKernel(PatchOutput y, int64_t ffn, const Bfloat16* dy, const Bfloat16* gate_up,
                   bool aligned) {
  const PatchPlace at = PlaceOfPatch(ffn);
  const bool whole = aligned && at.IsWhole(y.rows, ffn);
  FinishOutput(y.out, whole ? BackwardPatch<kFormat, true>(y, ffn, dy, gate_up, at)
                            : BackwardPatch<kFormat, false>(y, ffn, dy, gate_up, at));
}

}  // namespace

void SwigluForwardFp8(int64_t rows, int64_t ffn, const Bfloat16* gate_up, const Fp8Output& y,
                      cudaStream_t stream) {
  const PatchOutput out(y, rows, ffn);
  const bool aligned = out.aligned && Aligned(gate_up, 16);
  auto* const kernel =
      y.format == fp8::Format::kE4m3 ? ForwardKernel<__NV_E4M3> : ForwardKernel<__NV_E5M2>;
  kernel<<<PatchBlocks(rows, ffn), kPatchThreads, 0, stream>>>(out, gate_up, aligned);
}

void SwigluBackwardFp8(int64_t rows, int64_t ffn, const Bfloat16* dy, const Bfloat16* gate_up,
                       const Fp8Output& dgate_up, cudaStream_t stream) {
  const PatchOutput out(dgate_up, rows, 2 * ffn);
  const bool aligned = out.aligned && ffn % kEight == 0 && Aligned(dy, 16) && Aligned(gate_up, 16);
  auto* const kernel =
      dgate_up.format == fp8::Format::kE4m3 ? BackwardKernel<__NV_E4M3> : BackwardKernel<__NV_E5M2>;
  kernel<<<PatchBlocks(rows, ffn), kPatchThreads, 0, stream>>>(out, ffn, dy, gate_up, aligned);
}

}  // namespace muster::kernels::cuda
