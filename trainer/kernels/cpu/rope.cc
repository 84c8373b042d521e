#include "trainer/kernels/rope.h"

#include <algorithm>
#include <cmath>

#include "trainer/kernels/cpu/vectorize.h"

namespace muster::kernels {
namespace {

constexpr double kTwoPi = 6.283185307179586;

// Llama 3.1: long waves turn slower by `factor`, short ones stay, those between are blended.
double ScaleFrequency(double frequency, const config::RopeScaling& scaling) {
  const double wavelength = kTwoPi / frequency;
  const double original = static_cast<double>(scaling.original_max_position_embeddings);
  if (wavelength < original / scaling.high_freq_factor) return frequency;
  if (wavelength > original / scaling.low_freq_factor) return frequency / scaling.factor;
  const double smooth = (original / wavelength - scaling.low_freq_factor) /
                        (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1 - smooth) * frequency / scaling.factor + smooth * frequency;
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

std::vector<double> RopeFrequencies(int64_t head_dim, double base,
                                    const config::RopeScaling& scaling) {
  std::vector<double> frequencies(static_cast<size_t>(head_dim / 2));
  for (int64_t i = 0; i < head_dim / 2; ++i) {
    const double exponent = static_cast<double>(2 * i) / static_cast<double>(head_dim);
    const double frequency = 1.0 / std::pow(base, exponent);
    frequencies[static_cast<size_t>(i)] =
        scaling.enabled ? ScaleFrequency(frequency, scaling) : frequency;
  }
  return frequencies;
}

template <typename A>
RopeTable<A> MakeRopeTable(int64_t positions, const std::vector<double>& frequencies) {
  RopeTable<A> table;
  for (int64_t s = 0; s < positions; ++s) {
    for (const double frequency : frequencies) {
      const double angle = static_cast<double>(s) * frequency;
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

template RopeTable<float> MakeRopeTable(int64_t, const std::vector<double>&);
template RopeTable<double> MakeRopeTable(int64_t, const std::vector<double>&);

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
