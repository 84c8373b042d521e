#pragma once

#include <cstdint>

#include "trainer/kernels/fp8_output.h"
#include "trainer/kernels/rope.h"
#include "trainer/tensor/bfloat16.h"

// Rotary positions on packed rows [all query heads, all K heads, all V heads] (see qkv_packing.h),
// where attention takes them. cos, sin: [positions, head_dim / 2]. head_dim is a multiple of 16.

namespace muster::kernels {

// Rotates the query and K heads in place.
void RopePacked(const QkvShape& shape, const float* cos, const float* sin, Bfloat16* qkv);

// The same for gradients: turns them back.
void RopePackedGradient(const QkvShape& shape, const float* cos, const float* sin, Bfloat16* dqkv);

// out = the whole of dqkv, turned back, in FP8. dqkv stays.
void RopePackedGradientFp8(const QkvShape& shape, const float* cos, const float* sin,
                           const Bfloat16* dqkv, const Fp8Output& out);

constexpr int64_t PackedColumns(const QkvShape& shape) {
  return shape.groups * (shape.heads_per_group + 2) * shape.head_dim;
}

}  // namespace muster::kernels
