#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

// Loops of the CPU kernels are compiled for several instruction sets and chosen when the program
// starts. Sums keep kLanes partial results, so that every one of those versions, and every machine,
// adds in the same order; products and sums are never fused (-ffp-contract=off). Sanitizers run
// before the choice could be made: they get one version.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MUSTER_VECTORIZE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define MUSTER_VECTORIZE
#endif

namespace muster::kernels {

constexpr int64_t kLanes = 16;

// Sum of term(0) .. term(n - 1) in a fixed order.
template <typename A, typename Term>
inline A SumInLanes(int64_t n, Term term) {
  A lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
  }
  for (; i < n; ++i) lanes[i % kLanes] += term(i);
  A sum = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane) sum += lanes[lane];
  return sum;
}

// Largest of term(0) .. term(n - 1), n > 0. NaN is passed over unless it comes first.
template <typename A, typename Term>
inline A MaxInLanes(int64_t n, Term term) {
  A lanes[kLanes];
  for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = term(0);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const A value = term(i + lane);
      lanes[lane] = value > lanes[lane] ? value : lanes[lane];
    }
  }
  for (; i < n; ++i) lanes[0] = term(i) > lanes[0] ? term(i) : lanes[0];
  A max = lanes[0];
  for (int64_t lane = 1; lane < kLanes; ++lane) max = lanes[lane] > max ? lanes[lane] : max;
  return max;
}

// e^x. For float a polynomial without branches (within 2 ulp; arguments are limited to about
// [-87.3, 88.3], where the result is still a normal number; NaN stays NaN), because libm's expf
// keeps a loop from being vectorised.
inline double Exp(double x) {
  return std::exp(x);
}
inline float Exp(float x) {
  x = x < -87.3f ? -87.3f : x;
  x = x > 88.3f ? 88.3f : x;
  constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = x * 1.44269504f + kRounder;
  const float n = shifted - kRounder;
  const float r = x - n * 0.693359375f + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  return p * std::bit_cast<float>((std::bit_cast<int32_t>(shifted) << 23) + 0x3f800000);
}

}  // namespace muster::kernels
