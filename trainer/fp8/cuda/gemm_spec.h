#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "trainer/fp8/formats.h"

namespace muster::fp8::cuda {

enum class ElementType : uint8_t { kE4m3, kE5m2, kBf16, kFp32 };

constexpr ElementType ToElementType(Format format) {
  return format == Format::kE4m3 ? ElementType::kE4m3 : ElementType::kE5m2;
}
constexpr bool IsFp8(ElementType type) {
  return type == ElementType::kE4m3 || type == ElementType::kE5m2;
}
constexpr int64_t BytesOf(ElementType type) {
  if (type == ElementType::kFp32) return 4;
  return type == ElementType::kBf16 ? 2 : 1;
}
const char* Name(ElementType type);

// One matrix product on row-major operands: out[M, N] = left[M, K] * right[K, N], or that plus an
// addend.
// All that its algorithm may depend on.
struct GemmSpec {
  int64_t m, n, k;
  ElementType left, right, out;
  // An operand's rows hold K neighbouring elements: left is stored [M, K], right [N, K] (all that
  // Hopper's FP8 can multiply). Or it is stored the other way round: left [K, M], right [K, N].
  bool left_k_outer = false;
  bool right_k_outer = false;
  bool accumulate = false;
  // FP8 only: sums stay in the tensor core's 22-bit accumulator instead of moving to fp32 every
  // 128 elements of K.
  bool fast_accumulation = false;

  auto operator<=>(const GemmSpec&) const = default;
};

// "8192x6144x4096 e4m3*e4m3>bf16 fast": for messages, and the key of the tuning cache.
std::string ToString(const GemmSpec& spec);

constexpr double Flops(const GemmSpec& spec) {
  return 2.0 * static_cast<double>(spec.m) * static_cast<double>(spec.n) *
         static_cast<double>(spec.k);
}

}  // namespace muster::fp8::cuda
