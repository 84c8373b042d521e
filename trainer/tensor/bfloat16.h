#pragma once

#include <bit>
#include <cstdint>

namespace muster {

// The storage of a bf16 number, same layout as c10::BFloat16; for code that does without LibTorch.
// Arithmetic is float's.
struct Bfloat16 {
  uint16_t bits;

  Bfloat16() = default;
  // Rounds to nearest even; NaN stays NaN (quiet, 0x7fc0 with the sign kept).
  explicit constexpr Bfloat16(float value) : bits(Round(std::bit_cast<uint32_t>(value))) {}
  explicit constexpr operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }

 private:
  static constexpr uint16_t Round(uint32_t value) {
    const uint32_t rounded = (value + 0x7fff + ((value >> 16) & 1)) >> 16;
    const bool nan = (value & 0x7fffffff) > 0x7f800000;
    return static_cast<uint16_t>(nan ? ((value >> 16) & 0x8000) | 0x7fc0 : rounded);
  }
};

// What sums of T are kept in: double for double, else float.
template <typename T>
struct AccumulateTraits {
  using Type = float;
};
template <>
struct AccumulateTraits<double> {
  using Type = double;
};
template <typename T>
using Accumulate = typename AccumulateTraits<T>::Type;

}  // namespace muster
