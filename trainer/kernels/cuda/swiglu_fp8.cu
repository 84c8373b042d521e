#include "trainer/kernels/cuda/swiglu_fp8.h"

#include "trainer/kernels/cuda/fp8_patch.cuh"

namespace muster::kernels::cuda {
namespace {

__device__ float Sigmoid(float x) {
  return __fdividef(1.0f, 1.0f + __expf(-x));
}

// A patch of y. The largest magnitude in it.
template <__nv_fp8_interpretation_t kFormat, bool kWhole>
__device__ float ForwardPatch(const PatchOutput& y, const Bfloat16* gate_up, const PatchPlace& at) {
  Eight<Bfloat16> gates[kEight], ups[kEight];
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    const int64_t inside = at.row + i < y.rows ? y.columns - at.column : 0;
    const Bfloat16* gate = gate_up + (at.row + i) * 2 * y.columns + at.column;
    gates[i] = LoadEight<kWhole>(gate, inside);
    ups[i] = LoadEight<kWhole>(gate + y.columns, inside);
  }
  const float scale = ScaleOf(y.out);
  float largest = 0;
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

template <__nv_fp8_interpretation_t kFormat, bool kAllWhole>
__global__ void __launch_bounds__(kPatchThreads, 3)
    ForwardKernel(PatchOutput y, const Bfloat16* gate_up, bool aligned) {
  const PatchPlace at = PlaceOfPatch(y.columns);
  const bool whole = kAllWhole || (aligned && at.IsWhole(y.rows, y.columns));
  FinishOutput(y.out, whole ? ForwardPatch<kFormat, true>(y, gate_up, at)
                            : ForwardPatch<kFormat, false>(y, gate_up, at));
}

// A patch of dgate and the same one of dup, `ffn` columns further to the right in y.
// kAgain: y once more, in e4m3.
template <__nv_fp8_interpretation_t kFormat, bool kWhole, bool kAgain>
__device__ float BackwardPatch(const PatchOutput& y, const PatchOutput& y_again, const Bfloat16* dy,
                               const Bfloat16* gate_up, const PatchPlace& at) {
  const int64_t ffn = y_again.columns;
  const float scale = ScaleOf(y.out), again_scale = ScaleOf(y_again.out);
  float largest = 0, again_largest = 0;
  CodesOfEight dgates[kEight], dups[kEight], again[kEight];
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    const int64_t inside = at.row + i < y.rows ? ffn - at.column : 0;
    const Bfloat16* gate_row = gate_up + (at.row + i) * 2 * ffn + at.column;
    const auto grads = LoadEight<kWhole>(dy + (at.row + i) * ffn + at.column, inside);
    const auto gates = LoadEight<kWhole>(gate_row, inside);
    const auto ups = LoadEight<kWhole>(gate_row + ffn, inside);
    float dgate[kEight], dup[kEight], value[kEight];
#pragma unroll
    for (int j = 0; j < kEight; ++j) {
      const float gate = ToFloat(gates.element[j]), grad = ToFloat(grads.element[j]);
      const float sigmoid = Sigmoid(gate);
      dgate[j] = grad * ToFloat(ups.element[j]) * sigmoid * (1 + gate * (1 - sigmoid));
      dup[j] = grad * gate * sigmoid;
      value[j] = gate * sigmoid * ToFloat(ups.element[j]);
    }
    if constexpr (kAgain) again[i] = CastEight<__NV_E4M3>(value, again_scale, again_largest);
    dgates[i] = CastEight<kFormat>(dgate, scale, largest);
    dups[i] = CastEight<kFormat>(dup, scale, largest);
  }
  StorePatch<kWhole>(y, at.row, at.column, ffn, dgates);
  StorePatch<kWhole>(y, at.row, ffn + at.column, 2 * ffn, dups);
  if constexpr (kAgain) StorePatch<kWhole>(y_again, at.row, at.column, ffn, again);
  return largest;
}

template <__nv_fp8_interpretation_t kFormat, bool kAgain, bool kAllWhole>
__global__ void __launch_bounds__(kPatchThreads, kAllWhole ? 3 : 2)
    BackwardKernel(PatchOutput y, PatchOutput y_again, const Bfloat16* dy, const Bfloat16* gate_up,
                   bool aligned) {
  const PatchPlace at = PlaceOfPatch(y_again.columns);
  const bool whole = kAllWhole || (aligned && at.IsWhole(y.rows, y_again.columns));
  FinishOutput(y.out, whole ? BackwardPatch<kFormat, true, kAgain>(y, y_again, dy, gate_up, at)
                            : BackwardPatch<kFormat, false, kAgain>(y, y_again, dy, gate_up, at));
}

template <__nv_fp8_interpretation_t kFormat>
auto* ChooseForward(bool all_whole) {
  return all_whole ? ForwardKernel<kFormat, true> : ForwardKernel<kFormat, false>;
}

template <__nv_fp8_interpretation_t kFormat>
auto* ChooseBackward(bool again, bool all_whole) {
  if (again) {
    return all_whole ? BackwardKernel<kFormat, true, true> : BackwardKernel<kFormat, true, false>;
  }
  return all_whole ? BackwardKernel<kFormat, false, true> : BackwardKernel<kFormat, false, false>;
}

constexpr int kThreads = 256;

// Eight neighbouring elements a thread (one where rows are not whole), in bf16.
template <bool kWhole>
__global__ void __launch_bounds__(kThreads)
    PlainForwardKernel(int64_t count, int64_t ffn, const Bfloat16* gate_up, Bfloat16* y) {
  constexpr int kStep = kWhole ? kEight : 1;
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kStep;
  if (at >= count) return;
  const Bfloat16* const gate = gate_up + at / ffn * 2 * ffn + at % ffn;
  const auto gates = LoadEight<kWhole>(gate, kStep), ups = LoadEight<kWhole>(gate + ffn, kStep);
  Eight<Bfloat16> result;
#pragma unroll
  for (int j = 0; j < kEight; ++j) {
    const float x = ToFloat(gates.element[j]);
    result.element[j] = FromFloat<Bfloat16>(x * Sigmoid(x) * ToFloat(ups.element[j]));
  }
  StoreEight<kWhole>(y + at, result, kStep);
}

template <bool kWhole>
__global__ void __launch_bounds__(kThreads)
    PlainBackwardKernel(int64_t count, int64_t ffn, const Bfloat16* dy, const Bfloat16* gate_up,
                        Bfloat16* dgate_up, Bfloat16* y_again) {
  constexpr int kStep = kWhole ? kEight : 1;
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kStep;
  if (at >= count) return;
  const int64_t gate_at = at / ffn * 2 * ffn + at % ffn;
  const auto gates = LoadEight<kWhole>(gate_up + gate_at, kStep);
  const auto ups = LoadEight<kWhole>(gate_up + gate_at + ffn, kStep);
  const auto grads = LoadEight<kWhole>(dy + at, kStep);
  Eight<Bfloat16> dgates, dups, again;
#pragma unroll
  for (int j = 0; j < kEight; ++j) {
    const float gate = ToFloat(gates.element[j]), up = ToFloat(ups.element[j]);
    const float grad = ToFloat(grads.element[j]), sigmoid = Sigmoid(gate);
    dgates.element[j] = FromFloat<Bfloat16>(grad * up * sigmoid * (1 + gate * (1 - sigmoid)));
    dups.element[j] = FromFloat<Bfloat16>(grad * gate * sigmoid);
    again.element[j] = FromFloat<Bfloat16>(gate * sigmoid * up);
  }
  StoreEight<kWhole>(dgate_up + gate_at, dgates, kStep);
  StoreEight<kWhole>(dgate_up + gate_at + ffn, dups, kStep);
  if (y_again != nullptr) StoreEight<kWhole>(y_again + at, again, kStep);
}

unsigned PlainBlocks(int64_t count, bool whole) {
  const int64_t threads = whole ? count / kEight : count;
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

}  // namespace

void SwigluForwardFp8(int64_t rows, int64_t ffn, const Bfloat16* gate_up, const Fp8Output& y,
                      cudaStream_t stream) {
  const PatchOutput out(y, rows, ffn);
  const bool aligned = out.aligned && Aligned(gate_up, 16);
  const bool all_whole = AllWhole(rows, ffn, aligned);
  auto* const kernel = y.format == fp8::Format::kE4m3 ? ChooseForward<__NV_E4M3>(all_whole)
                                                      : ChooseForward<__NV_E5M2>(all_whole);
  kernel<<<PatchBlocks(rows, ffn), kPatchThreads, 0, stream>>>(out, gate_up, aligned);
}

void SwigluBackwardFp8(int64_t rows, int64_t ffn, const Bfloat16* dy, const Bfloat16* gate_up,
                       const Fp8Output& dgate_up, const Fp8Output& y_again, cudaStream_t stream) {
  const PatchOutput out(dgate_up, rows, 2 * ffn), again(y_again, rows, ffn);
  const bool aligned = out.aligned && again.aligned && Aligned(dy, 16) && Aligned(gate_up, 16);
  const bool e4m3 = dgate_up.format == fp8::Format::kE4m3;
  const bool all_whole = AllWhole(rows, ffn, aligned), wanted = y_again.scale != nullptr;
  auto* const kernel = e4m3 ? ChooseBackward<__NV_E4M3>(wanted, all_whole)
                            : ChooseBackward<__NV_E5M2>(wanted, all_whole);
  kernel<<<PatchBlocks(rows, ffn), kPatchThreads, 0, stream>>>(out, again, dy, gate_up, aligned);
}

void SwigluForward(int64_t rows, int64_t ffn, const Bfloat16* gate_up, Bfloat16* y,
                   cudaStream_t stream) {
  const bool whole = ffn % kEight == 0 && Aligned(gate_up, 16) && Aligned(y, 16);
  if (rows * ffn == 0) return;
  auto* const kernel = whole ? PlainForwardKernel<true> : PlainForwardKernel<false>;
  kernel<<<PlainBlocks(rows * ffn, whole), kThreads, 0, stream>>>(rows * ffn, ffn, gate_up, y);
}

void SwigluBackwardAgain(int64_t rows, int64_t ffn, const Bfloat16* dy, const Bfloat16* gate_up,
                         Bfloat16* dgate_up, Bfloat16* y_again, cudaStream_t stream) {
  const bool whole = ffn % kEight == 0 && Aligned(dy, 16) && Aligned(gate_up, 16) &&
                     Aligned(dgate_up, 16) && Aligned(y_again, 16);
  if (rows * ffn == 0) return;
  auto* const kernel = whole ? PlainBackwardKernel<true> : PlainBackwardKernel<false>;
  kernel<<<PlainBlocks(rows * ffn, whole), kThreads, 0, stream>>>(rows * ffn, ffn, dy, gate_up,
                                                                  dgate_up, y_again);
}

}  // namespace muster::kernels::cuda
