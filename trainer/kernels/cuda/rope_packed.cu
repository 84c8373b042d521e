#include "trainer/kernels/cuda/fp8_patch.cuh"
#include "trainer/kernels/cuda/rope_packed.h"

namespace muster::kernels::cuda {
namespace {

constexpr int kThreads = 256;

struct Angles {
  const float *cos, *sin;  // [positions, half]
  int64_t positions;
  int half;
  float sign;
};

// Eight pairs (a, b) turned by the angles from `at` on.
__device__ inline void TurnEight(const Angles& angles, int64_t at, const Eight<Bfloat16>& a,
                                 const Eight<Bfloat16>& b, float (&turned_a)[kEight],
                                 float (&turned_b)[kEight]) {
  float cos[kEight], sin[kEight];
#pragma unroll
  for (int j = 0; j < kEight; j += 4) {
    *reinterpret_cast<float4*>(cos + j) = *reinterpret_cast<const float4*>(angles.cos + at + j);
    *reinterpret_cast<float4*>(sin + j) = *reinterpret_cast<const float4*>(angles.sin + at + j);
  }
#pragma unroll
  for (int j = 0; j < kEight; ++j) {
    const float x = ToFloat(a.element[j]), y = ToFloat(b.element[j]);
    const float s = angles.sign * sin[j];
    turned_a[j] = x * cos[j] - y * s;
    turned_b[j] = y * cos[j] + x * s;
  }
}

// One thread turns eight pairs; `columns` of a row, of which the first heads * 2 * half turn.
__global__ void __launch_bounds__(kThreads)
    TurnKernel(Angles angles, int64_t tokens, int heads, int64_t columns, Bfloat16* qkv) {
  const int per_head = angles.half / kEight;
  const int per_token = heads * per_head;
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t token = index / per_token;
  if (token >= tokens) return;
  const int of_token = static_cast<int>(index % per_token);
  const int head = of_token / per_head, d = of_token % per_head * kEight;
  Bfloat16* const first = qkv + token * columns + head * 2 * angles.half + d;
  const auto a = LoadEight<true>(first, kEight), b = LoadEight<true>(first + angles.half, kEight);
  float turned_a[kEight], turned_b[kEight];
  TurnEight(angles, token % angles.positions * angles.half + d, a, b, turned_a, turned_b);
  Eight<Bfloat16> result_a, result_b;
#pragma unroll
  for (int j = 0; j < kEight; ++j) {
    result_a.element[j] = FromFloat<Bfloat16>(turned_a[j]);
    result_b.element[j] = FromFloat<Bfloat16>(turned_b[j]);
  }
  StoreEight<true>(first, result_a, kEight);
  StoreEight<true>(first + angles.half, result_b, kEight);
}

// Two patches of y, the halves of a head. `at` counts columns of first halves alone.
template <__nv_fp8_interpretation_t kFormat, bool kWhole>
__device__ int TurnPatches(const PatchOutput& y, const Angles& angles, int64_t rotated_heads,
                           const Bfloat16* dqkv, const PatchPlace& at) {
  const int64_t head = at.column / angles.half, d = at.column % angles.half;
  const int64_t first = head * 2 * angles.half + d;
  const float scale = ScaleOf(y.out);
  int largest = 0;
  CodesOfEight firsts[kEight], seconds[kEight];
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    const int64_t row = at.row + i;
    const int64_t inside = kWhole || row < y.rows ? kEight : 0;
    const Bfloat16* const x = dqkv + row * y.columns + first;
    const auto a = LoadEight<kWhole>(x, inside);
    const auto b = LoadEight<kWhole>(x + angles.half, inside);
    float turned_a[kEight], turned_b[kEight];
    if (head < rotated_heads) {
      TurnEight(angles, row % angles.positions * angles.half + d, a, b, turned_a, turned_b);
    } else {
#pragma unroll
      for (int j = 0; j < kEight; ++j) {
        turned_a[j] = ToFloat(a.element[j]);
        turned_b[j] = ToFloat(b.element[j]);
      }
    }
    firsts[i] = CastEight<kFormat>(turned_a, scale, largest);
    seconds[i] = CastEight<kFormat>(turned_b, scale, largest);
  }
  StorePatch<kWhole>(y, at.row, first, y.columns, firsts);
  StorePatch<kWhole>(y, at.row, first + angles.half, y.columns, seconds);
  return largest;
}

template <__nv_fp8_interpretation_t kFormat, bool kAllWhole>
__global__ void __launch_bounds__(kPatchThreads, kAllWhole ? 3 : 2)
    TurnFp8Kernel(PatchOutput y, Angles angles, int64_t rotated_heads, const Bfloat16* dqkv,
                  bool aligned) {
  const PatchPlace at = PlaceOfPatch(y.columns / 2);
  int largest = 0;
  // Past the last column there is no head (y.columns / 2 is a multiple of eight).
  if (kAllWhole || at.column < y.columns / 2) {
    const bool whole = kAllWhole || (aligned && at.IsWhole(y.rows, y.columns / 2));
    largest = whole ? TurnPatches<kFormat, true>(y, angles, rotated_heads, dqkv, at)
                    : TurnPatches<kFormat, false>(y, angles, rotated_heads, dqkv, at);
  }
  FinishOutput(y.out, largest);
}

template <__nv_fp8_interpretation_t kFormat>
auto* ChooseKernel(bool all_whole) {
  return all_whole ? TurnFp8Kernel<kFormat, true> : TurnFp8Kernel<kFormat, false>;
}

void Launch(const QkvShape& shape, const float* cos, const float* sin, float sign, Bfloat16* qkv,
            cudaStream_t stream) {
  const Angles angles{cos, sin, shape.positions, static_cast<int>(shape.head_dim / 2), sign};
  const int64_t heads = shape.groups * (shape.heads_per_group + 1);
  const int64_t tokens = shape.batch * shape.positions;
  const int64_t threads = tokens * heads * (angles.half / kEight);
  if (threads == 0) return;
  TurnKernel<<<static_cast<unsigned>((threads + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      angles, tokens, static_cast<int>(heads), PackedColumns(shape), qkv);
}

}  // namespace

void RopePacked(const QkvShape& shape, const float* cos, const float* sin, Bfloat16* qkv,
                cudaStream_t stream) {
  Launch(shape, cos, sin, 1, qkv, stream);
}

void RopePackedGradient(const QkvShape& shape, const float* cos, const float* sin, Bfloat16* dqkv,
                        cudaStream_t stream) {
  Launch(shape, cos, sin, -1, dqkv, stream);
}

void RopePackedGradientFp8(const QkvShape& shape, const float* cos, const float* sin,
                           const Bfloat16* dqkv, const Fp8Output& out, cudaStream_t stream) {
  const Angles angles{cos, sin, shape.positions, static_cast<int>(shape.head_dim / 2), -1};
  const PatchOutput y(out, shape.batch * shape.positions, PackedColumns(shape));
  const bool aligned = y.aligned && Aligned(dqkv, 16);
  const bool all_whole = AllWhole(y.rows, y.columns / 2, aligned);
  auto* const kernel = out.format == fp8::Format::kE4m3 ? ChooseKernel<__NV_E4M3>(all_whole)
                                                        : ChooseKernel<__NV_E5M2>(all_whole);
  kernel<<<PatchBlocks(y.rows, y.columns / 2), kPatchThreads, 0, stream>>>(
      y, angles, shape.groups * (shape.heads_per_group + 1), dqkv, aligned);
}

}  // namespace muster::kernels::cuda
