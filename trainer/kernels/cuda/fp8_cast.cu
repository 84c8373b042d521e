#include "trainer/kernels/cuda/fp8_cast.h"

#include "trainer/kernels/cuda/fp8_patch.cuh"

namespace muster::kernels::cuda {
namespace {

template <typename T, __nv_fp8_interpretation_t kFormat, bool kWhole>
__device__ float CastPatch(const PatchOutput& y, const T* x, const PatchPlace& at) {
  Eight<T> rows[kEight];
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    const int64_t inside = at.row + i < y.rows ? y.columns - at.column : 0;
    rows[i] = LoadEight<kWhole>(x + (at.row + i) * y.columns + at.column, inside);
  }
  const float scale = ScaleOf(y.out);
  float largest = 0;
  CodesOfEight codes[kEight];
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    float values[kEight];
#pragma unroll
    for (int j = 0; j < kEight; ++j) values[j] = ToFloat(rows[i].element[j]);
    codes[i] = CastEight<kFormat>(values, scale, largest);
  }
  StorePatch<kWhole>(y, at.row, at.column, y.columns, codes);
  return largest;
}

template <typename T, __nv_fp8_interpretation_t kFormat, bool kAllWhole>
__global__ void __launch_bounds__(kPatchThreads, kAllWhole ? 4 : 3)
    CastKernel(PatchOutput y, const T* x, bool aligned) {
  const PatchPlace at = PlaceOfPatch(y.columns);
  const bool whole = kAllWhole || (aligned && at.IsWhole(y.rows, y.columns));
  FinishOutput(y.out, whole ? CastPatch<T, kFormat, true>(y, x, at)
                            : CastPatch<T, kFormat, false>(y, x, at));
}

template <typename T, __nv_fp8_interpretation_t kFormat>
auto* ChooseKernel(bool all_whole) {
  return all_whole ? CastKernel<T, kFormat, true> : CastKernel<T, kFormat, false>;
}

}  // namespace

template <typename T>
void CastToFp8(const T* x, int64_t rows, int64_t columns, const float* scale, fp8::Format format,
               uint8_t* codes, uint8_t* transposed, float* scale_inv, float* amax,
               cudaStream_t stream) {
  const PatchOutput y({format, scale, codes, transposed, scale_inv, amax}, rows, columns);
  const bool aligned = y.aligned && Aligned(x, 16);
  const bool all_whole = AllWhole(rows, columns, aligned);
  auto* const kernel = format == fp8::Format::kE4m3 ? ChooseKernel<T, __NV_E4M3>(all_whole)
                                                    : ChooseKernel<T, __NV_E5M2>(all_whole);
  kernel<<<PatchBlocks(rows, columns), kPatchThreads, 0, stream>>>(y, x, aligned);
}

template void CastToFp8(const float*, int64_t, int64_t, const float*, fp8::Format, uint8_t*,
                        uint8_t*, float*, float*, cudaStream_t);
template void CastToFp8(const Bfloat16*, int64_t, int64_t, const float*, fp8::Format, uint8_t*,
                        uint8_t*, float*, float*, cudaStream_t);

}  // namespace muster::kernels::cuda
