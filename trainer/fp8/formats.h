#pragma once

#include <bit>
#include <cstdint>
#include <limits>

// The two 8-bit floats of FP8 training (OCP): e4m3 (4 exponent bits, 3 mantissa bits, no infinity)
// and e5m2. Encoding rounds to nearest even and saturates: anything above the largest finite value,
// infinity too, becomes that value. NaN becomes the NaN code with its sign. No LibTorch here: CUDA
// code and its tests share this file.

namespace muster::fp8 {

enum class Format : uint8_t { kE4m3, kE5m2 };

template <Format kFormat>
struct FormatTraits;
template <>
struct FormatTraits<Format::kE4m3> {
  static constexpr int kMantissaBits = 3;
  static constexpr int kBias = 7;
  static constexpr float kMax = 448.0f;
};
template <>
struct FormatTraits<Format::kE5m2> {
  static constexpr int kMantissaBits = 2;
  static constexpr int kBias = 15;
  static constexpr float kMax = 57344.0f;
};

constexpr float MaxFinite(Format format) {
  return format == Format::kE4m3 ? FormatTraits<Format::kE4m3>::kMax
                                 : FormatTraits<Format::kE5m2>::kMax;
}

// A number in FP8: its code and the code's value as a float.
struct Rounded {
  uint8_t code;
  float value;
};

// Without branches, so that loops over it can be vectorised.
template <Format kFormat>
constexpr Rounded Round(float x) {
  using Traits = FormatTraits<kFormat>;
  constexpr int kDropped = 23 - Traits::kMantissaBits;
  // Adding 2^(23 + exponent of the smallest step) rounds a subnormal to a multiple of that step.
  constexpr int kStepExponent = 1 - Traits::kBias - Traits::kMantissaBits;
  constexpr float kRounder = std::bit_cast<float>((127 + 23 + kStepExponent) << 23);
  constexpr uint32_t kMinNormal = (127 + 1 - Traits::kBias) << 23;
  constexpr uint32_t kMaxBits = std::bit_cast<uint32_t>(Traits::kMax);
  constexpr uint32_t kNan = 0x7f;

  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = bits & 0x80000000;
  const uint32_t magnitude = bits & 0x7fffffff;
  const bool nan = magnitude > 0x7f800000;
  const uint32_t clamped = magnitude > kMaxBits ? kMaxBits : magnitude;

  const uint32_t normal =
      (clamped + ((1u << (kDropped - 1)) - 1) + ((clamped >> kDropped) & 1)) >> kDropped;
  const float shifted = std::bit_cast<float>(clamped) + kRounder;
  const bool subnormal = clamped < kMinNormal;
  const uint32_t code = subnormal
                            ? std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRounder)
                            : normal - ((127 - Traits::kBias) << Traits::kMantissaBits);
  const uint32_t value =
      subnormal ? std::bit_cast<uint32_t>(shifted - kRounder) : normal << kDropped;
  return {static_cast<uint8_t>((nan ? kNan : code) | sign >> 24),
          std::bit_cast<float>((nan ? 0x7fc00000 : value) | sign)};
}

constexpr uint8_t Encode(Format format, float x) {
  return format == Format::kE4m3 ? Round<Format::kE4m3>(x).code : Round<Format::kE5m2>(x).code;
}

template <Format kFormat>
constexpr float DecodeAs(uint8_t code) {
  using Traits = FormatTraits<kFormat>;
  const uint32_t mantissa = code & ((1u << Traits::kMantissaBits) - 1);
  const int exponent = (code & 0x7f) >> Traits::kMantissaBits;
  const float sign = code & 0x80 ? -1.0f : 1.0f;
  if constexpr (kFormat == Format::kE4m3) {
    if ((code & 0x7f) == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  } else if (exponent == 31) {
    return mantissa != 0 ? std::numeric_limits<float>::quiet_NaN()
                         : sign * std::numeric_limits<float>::infinity();
  }
  const int steps = (exponent > 0 ? exponent : 1) - Traits::kBias - Traits::kMantissaBits;
  const uint32_t digits = exponent > 0 ? mantissa | 1u << Traits::kMantissaBits : mantissa;
  return sign * static_cast<float>(digits) * std::bit_cast<float>((127 + steps) << 23);
}

constexpr float Decode(Format format, uint8_t code) {
  return format == Format::kE4m3 ? DecodeAs<Format::kE4m3>(code) : DecodeAs<Format::kE5m2>(code);
}

}  // namespace muster::fp8
