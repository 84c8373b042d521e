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

// Eight pairs (a, b) turned by the angles cos and sin, each four floats twice.
__device__ inline void TurnEight(const float4 (&cos)[2], const float4 (&sin)[2], float sign,
                                 const Eight<Bfloat16>& a, const Eight<Bfloat16>& b,
                                 float (&turned_a)[kEight], float (&turned_b)[kEight]) {
  const auto turn = [&](int j, float c, float s) {
    const float x = ToFloat(a.element[j]), y = ToFloat(b.element[j]);
    turned_a[j] = x * c - y * (sign * s);
    turned_b[j] = y * c + x * (sign * s);
  };
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    turn(4 * half + 0, cos[half].x, sin[half].x);
    turn(4 * half + 1, cos[half].y, sin[half].y);
    turn(4 * half + 2, cos[half].z, sin[half].z);
    turn(4 * half + 3, cos[half].w, sin[half].w);
  }
}

// By the angles from `at` on.
__device__ inline void TurnEight(const Angles& angles, int64_t at, const Eight<Bfloat16>& a,
                                 const Eight<Bfloat16>& b, float (&turned_a)[kEight],
                                 float (&turned_b)[kEight]) {
  float4 cos[2], sin[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    cos[half] = *reinterpret_cast<const float4*>(angles.cos + at + 4 * half);
    sin[half] = *reinterpret_cast<const float4*>(angles.sin + at + 4 * half);
  }
  TurnEight(cos, sin, angles.sign, a, b, turned_a, turned_b);
}

// One thread turns eight pairs; `columns` of a row, of which the first heads * 2 * half turn.
__global__ void __launch_bounds__(kThreads)
    TurnKernel(Angles angles, int64_t tokens, int heads, int64_t columns, Bfloat16* qkv) {
  const int per_head = angles.half / kEight;
  const int per_token = heads * per_head;
  // Later tokens first, as PlaceOfPatch.
  const int64_t index = static_cast<int64_t>(gridDim.x - 1 - blockIdx.x) * kThreads + threadIdx.x;
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
__device__ float TurnPatches(const PatchOutput& y, const Angles& angles, int64_t rotated_heads,
                             const Bfloat16* dqkv, const PatchPlace& at) {
  const int64_t head = at.column / angles.half, d = at.column % angles.half;
  const int64_t first = head * 2 * angles.half + d;
  const float scale = ScaleOf(y.out);
  float largest = 0;
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

template <__nv_fp8_interpretation_t kFormat>
__global__ void __launch_bounds__(kPatchThreads, 2)
    TurnFp8Kernel(PatchOutput y, Angles angles, int64_t rotated_heads, const Bfloat16* dqkv,
                  bool aligned) {
  const PatchPlace at = PlaceOfPatch(y.columns / 2);
  float largest = 0;
  // Past the last column there is no head (y.columns / 2 is a multiple of eight).
  if (at.column < y.columns / 2) {
    largest = aligned && at.IsWhole(y.rows, y.columns / 2)
                  ? TurnPatches<kFormat, true>(y, angles, rotated_heads, dqkv, at)
                  : TurnPatches<kFormat, false>(y, angles, rotated_heads, dqkv, at);
  }
  FinishOutput(y.out, largest);
}

// The same where all patches are whole: a block has kWarpRows rows of several heads and keeps their
// angles in shared memory, where each warp finds them. Later rows first, as PlaceOfPatch.
constexpr int kTileWarps = 8, kTileColumns = kTileWarps * kWarpColumns;
constexpr int kAhead = 2;  // rows of a patch that are on their way
template <__nv_fp8_interpretation_t kFormat>
__global__ void __launch_bounds__(kTileWarps * 32, 3)
    TileKernel(PatchOutput y, Angles angles, int64_t rotated_columns, const Bfloat16* dqkv) {
  extern __shared__ __align__(16) float4 table[];  // cos, then sin; see `entry`
  const int64_t columns = y.columns / 2;           // of first halves of heads alone
  const int64_t across = (columns + kTileColumns - 1) / kTileColumns;
  const int64_t block = gridDim.x - 1 - blockIdx.x, top = block / across * kWarpRows;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, in_tile = lane / 8 * kEight;
  const int64_t column = block % across * kTileColumns + warp * kWarpColumns + lane % 8 * kEight;
  const int d = static_cast<int>(column % angles.half);
  const int64_t first = column / angles.half * 2 * angles.half + d;
  const bool inside = column < columns;
  Eight<Bfloat16> as[kEight], bs[kEight];
  const auto load = [&](int i) {
    const Bfloat16* const x = dqkv + (top + in_tile + i) * y.columns + first;
    as[i] = LoadEight<true>(x, kEight);
    bs[i] = LoadEight<true>(x + angles.half, kEight);
  };
#pragma unroll
  for (int i = 0; i < kAhead; ++i) {
    if (inside) load(i);
  }
  const int fours = angles.half / 4;  // of a row; even ones first, so that a warp reads neighbours
  const auto entry = [fours](int row, int four) {
    return row * fours + four % 2 * (fours / 2) + four / 2;
  };
  for (int i = threadIdx.x; i < kWarpRows * fours; i += kTileWarps * 32) {
    const int row = i / fours, four = i % fours;
    const int64_t at = (top + row) % angles.positions * angles.half + four * 4;
    table[entry(row, four)] = *reinterpret_cast<const float4*>(angles.cos + at);
    table[kWarpRows * fours + entry(row, four)] = *reinterpret_cast<const float4*>(angles.sin + at);
  }
  __syncthreads();
  float largest = 0;
  if (inside) {
    const float scale = ScaleOf(y.out);
    CodesOfEight firsts[kEight], seconds[kEight];
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
      if (i + kAhead < kEight) load(i + kAhead);
      float turned_a[kEight], turned_b[kEight];
      if (column < rotated_columns) {
        float4 cos[2], sin[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          cos[half] = table[entry(in_tile + i, d / 4 + half)];
          sin[half] = table[kWarpRows * fours + entry(in_tile + i, d / 4 + half)];
        }
        TurnEight(cos, sin, angles.sign, as[i], bs[i], turned_a, turned_b);
      } else {
#pragma unroll
        for (int j = 0; j < kEight; ++j) {
          turned_a[j] = ToFloat(as[i].element[j]);
          turned_b[j] = ToFloat(bs[i].element[j]);
        }
      }
      firsts[i] = CastEight<kFormat>(turned_a, scale, largest);
      seconds[i] = CastEight<kFormat>(turned_b, scale, largest);
    }
    StorePatch<true>(y, top + in_tile, first, y.columns, firsts);
    StorePatch<true>(y, top + in_tile, first + angles.half, y.columns, seconds);
  }
  FinishOutput(y.out, largest);
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
  const int64_t rotated_heads = shape.groups * (shape.heads_per_group + 1);
  const bool e4m3 = out.format == fp8::Format::kE4m3;
  if (aligned && y.rows % kWarpRows == 0 && y.columns / 2 % kWarpColumns == 0) {
    auto* const kernel = e4m3 ? TileKernel<__NV_E4M3> : TileKernel<__NV_E5M2>;
    const size_t table = static_cast<size_t>(2 * kWarpRows * angles.half) * sizeof(float);
    const int64_t across = (y.columns / 2 + kTileColumns - 1) / kTileColumns;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         static_cast<int>(table));
    kernel<<<static_cast<unsigned>(y.rows / kWarpRows * across), kTileWarps * 32, table, stream>>>(
        y, angles, rotated_heads * angles.half, dqkv);
    return;
  }
  auto* const kernel = e4m3 ? TurnFp8Kernel<__NV_E4M3> : TurnFp8Kernel<__NV_E5M2>;
  kernel<<<PatchBlocks(y.rows, y.columns / 2), kPatchThreads, 0, stream>>>(y, angles, rotated_heads,
                                                                           dqkv, aligned);
}

}  // namespace muster::kernels::cuda
