#include "trainer/kernels/rope_packed.h"

#include "trainer/kernels/cpu/fp8_store.h"

namespace muster::kernels {
namespace {

// Calls put(token, column, value) for every element of `in`, its rotated heads turned by the angles
// (`sign` -1: back).
template <typename Put>
void Turn(const QkvShape& shape, const float* cos, const float* sin, float sign, const Bfloat16* in,
          bool values_too, const Put& put) {
  const int64_t D = shape.head_dim, half = D / 2, columns = PackedColumns(shape);
  const int64_t rotated = shape.groups * (shape.heads_per_group + 1) * D;
  for (int64_t token = 0; token < shape.batch * shape.positions; ++token, in += columns) {
    const int64_t angles = token % shape.positions * half;
    for (int64_t head = 0; head < rotated; head += D) {
      for (int64_t d = 0; d < half; ++d) {
        const float a = float(in[head + d]), b = float(in[head + d + half]);
        const float c = cos[angles + d], s = sign * sin[angles + d];
        put(token, head + d, a * c - b * s);
        put(token, head + d + half, b * c + a * s);
      }
    }
    if (!values_too) continue;
    for (int64_t column = rotated; column < columns; ++column) {
      put(token, column, float(in[column]));
    }
  }
}

void TurnInPlace(const QkvShape& shape, const float* cos, const float* sin, float sign,
                 Bfloat16* qkv) {
  const int64_t columns = PackedColumns(shape);
  Turn(shape, cos, sin, sign, qkv, false, [&](int64_t token, int64_t column, float value) {
    qkv[token * columns + column] = Bfloat16(value);
  });
}

}  // namespace

void RopePacked(const QkvShape& shape, const float* cos, const float* sin, Bfloat16* qkv) {
  TurnInPlace(shape, cos, sin, 1, qkv);
}

void RopePackedGradient(const QkvShape& shape, const float* cos, const float* sin, Bfloat16* dqkv) {
  TurnInPlace(shape, cos, sin, -1, dqkv);
}

void RopePackedGradientFp8(const QkvShape& shape, const float* cos, const float* sin,
                           const Bfloat16* dqkv, const Fp8Output& out) {
  const Fp8Store store(out, shape.batch * shape.positions, PackedColumns(shape));
  Turn(shape, cos, sin, -1, dqkv, true,
       [&](int64_t token, int64_t column, float value) { store.Put(token, column, value); });
}

}  // namespace muster::kernels
