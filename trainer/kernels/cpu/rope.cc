#include "trainer/kernels/rope.h"

#include <algorithm>
#include <cmath>

#include "trainer/kernels/cpu/vectorize.h"

namespace muster::kernels {
namespace {

constexpr float kTwoPi = 6.283185307179586f;

// Llama 3.1: long waves turn slower by `factor`, short ones stay, those between are blended.
float ScaleFrequency(float frequency, const config::RopeScaling& scaling) {
  const float wavelength = kTwoPi / frequency;
  const float original = static_cast<float>(scaling.original_max_position_embeddings);
  const float low = static_cast<float>(scaling.low_freq_factor);
  const float high = static_cast<float>(scaling.high_freq_factor);
  const float factor = static_cast<float>(scaling.factor);
  if (wavelength < original / high) return frequency;
  if (wavelength > original / low) return frequency / factor;
  const float smooth = (original / wavelength - low) / (high - low);
  return (1 - smooth) * frequency / factor + smooth * frequency;
}

// One head: out = in rotated by the angles; `sign` -1 turns back.
template <typename T>
inline void Rotate(int64_t half, const Accumulate<T>* cos, const Accumulate<T>* sin,
                   Accumulate<T> sign, const T* in, T* out) {
  using A = Accumulate<T>;
  for (int64_t d = 0; d < half; ++d) {
    const A a = A(in[d]), b = A(in[d + half]);
    out[d] = T(a * cos[d] - sign * b * sin[d]);
    out[d + half] = T(b * cos[d] + sign * a * sin[d]);
  }
}

template <typename T>
MUSTER_VECTORIZE void Unpack(const QkvShape& shape, const Accumulate<T>* cos,
                             const Accumulate<T>* sin, const T* qkv, T* q, T* k, T* v) {
  const int64_t D = shape.head_dim, half = D / 2;
  for (int64_t token = 0; token < shape.batch * shape.positions; ++token) {
    const Accumulate<T>* const c = cos + token % shape.positions * half;
    const Accumulate<T>* const s = sin + token % shape.positions * half;
    for (int64_t g = 0; g < shape.groups; ++g) {
      for (int64_t h = 0; h < shape.heads_per_group; ++h, qkv += D, q += D) {
        Rotate<T>(half, c, s, 1, qkv, q);
      }
      Rotate<T>(half, c, s, 1, qkv, k);
      std::copy_n(qkv + D, D, v);
      qkv += 2 * D, k += D, v += D;
    }
  }
}

template <typename T>
MUSTER_VECTORIZE void Pack(const QkvShape& shape, const Accumulate<T>* cos,
                           const Accumulate<T>* sin, const T* dq, const T* dk, const T* dv,
                           T* dqkv) {
  const int64_t D = shape.head_dim, half = D / 2;
  for (int64_t token = 0; token < shape.batch * shape.positions; ++token) {
    const Accumulate<T>* const c = cos + token % shape.positions * half;
    const Accumulate<T>* const s = sin + token % shape.positions * half;
    for (int64_t g = 0; g < shape.groups; ++g) {
      for (int64_t h = 0; h < shape.heads_per_group; ++h, dqkv += D, dq += D) {
        Rotate<T>(half, c, s, -1, dq, dqkv);
      }
      Rotate<T>(half, c, s, -1, dk, dqkv);
      std::copy_n(dv, D, dqkv + D);
      dqkv += 2 * D, dk += D, dv += D;
    }
  }
}

}  // namespace

std::vector<float> RopeFrequencies(int64_t head_dim, double base,
                                   const config::RopeScaling& scaling) {
  std::vector<float> frequencies;
  for (int64_t i = 0; i < head_dim / 2; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(head_dim);
    const float frequency =
        1.0f / static_cast<float>(std::pow(base, static_cast<double>(exponent)));
    frequencies.push_back(scaling.enabled ? ScaleFrequency(frequency, scaling) : frequency);
  }
  return frequencies;
}

template <typename A>
RopeTable<A> MakeRopeTable(int64_t positions, const std::vector<float>& frequencies) {
  RopeTable<A> table;
  for (int64_t s = 0; s < positions; ++s) {
    for (const float frequency : frequencies) {
      const double angle = static_cast<double>(static_cast<float>(s) * frequency);
      table.cos.push_back(static_cast<A>(std::cos(angle)));
      table.sin.push_back(static_cast<A>(std::sin(angle)));
    }
  }
  return table;
}

template <typename T>
void RopeUnpack(const QkvShape& shape, const Accumulate<T>* cos, const Accumulate<T>* sin,
                const T* qkv, T* q, T* k, T* v) {
  Unpack(shape, cos, sin, qkv, q, k, v);
}

template <typename T>
void RopePackGradient(const QkvShape& shape, const Accumulate<T>* cos, const Accumulate<T>* sin,
                      const T* dq, const T* dk, const T* dv, T* dqkv) {
  Pack(shape, cos, sin, dq, dk, dv, dqkv);
}

template RopeTable<float> MakeRopeTable(int64_t, const std::vector<float>&);
template RopeTable<double> MakeRopeTable(int64_t, const std::vector<float>&);

#define MUSTER_INSTANTIATE(T)                                                                     \
  template void RopeUnpack(const QkvShape&, const Accumulate<T>*, const Accumulate<T>*, const T*, \
                           T*, T*, T*);                                                           \
  template void RopePackGradient(const QkvShape&, const Accumulate<T>*, const Accumulate<T>*,     \
                                 const T*, const T*, const T*, T*);
MUSTER_INSTANTIATE(float)
MUSTER_INSTANTIATE(double)
MUSTER_INSTANTIATE(Bfloat16)
#undef MUSTER_INSTANTIATE

}  // namespace muster::kernels
