#include "trainer/fp8/formats.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace muster::fp8 {
namespace {

bool IsNanCode(Format format, uint8_t code) {
  return std::isnan(Decode(format, code));
}

class FormatsTest : public ::testing::TestWithParam<Format> {};

TEST_P(FormatsTest, EveryFiniteCodeEncodesToItself) {
  for (int code = 0; code < 256; ++code) {
    const float value = Decode(GetParam(), static_cast<uint8_t>(code));
    if (!std::isfinite(value)) continue;
    EXPECT_EQ(Encode(GetParam(), value), code) << value;
  }
}

TEST_P(FormatsTest, RoundsToTheNearestAndTiesToTheEvenCode) {
  // Neighbouring magnitudes have neighbouring codes.
  for (int code = 0; code < 0x7f; ++code) {
    const float low = Decode(GetParam(), static_cast<uint8_t>(code));
    const float high = Decode(GetParam(), static_cast<uint8_t>(code + 1));
    if (!std::isfinite(high)) break;
    const float middle = (low + high) / 2;  // exact: few mantissa bits
    EXPECT_EQ(Encode(GetParam(), middle), code % 2 == 0 ? code : code + 1);
    EXPECT_EQ(Encode(GetParam(), std::nextafter(middle, 0.0f)), code);
    EXPECT_EQ(Encode(GetParam(), std::nextafter(middle, high)), code + 1);
    EXPECT_EQ(Encode(GetParam(), -middle), 0x80 | (code % 2 == 0 ? code : code + 1));
  }
}

TEST_P(FormatsTest, SaturatesAndKeepsNan) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float max = MaxFinite(GetParam());
  for (const float x : {max, max * 1.01f, 1e30f, std::numeric_limits<float>::max(), infinity}) {
    EXPECT_EQ(Decode(GetParam(), Encode(GetParam(), x)), max);
    EXPECT_EQ(Decode(GetParam(), Encode(GetParam(), -x)), -max);
  }
  EXPECT_TRUE(IsNanCode(GetParam(), Encode(GetParam(), std::nanf(""))));
  EXPECT_TRUE(IsNanCode(GetParam(), Encode(GetParam(), -std::nanf(""))));
}

TEST_P(FormatsTest, RoundedValueIsTheCodesValue) {
  // A walk over all exponents and many mantissas of fp32.
  for (uint64_t bits = 0; bits <= 0xffffffff; bits += 10007) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    const Rounded rounded =
        GetParam() == Format::kE4m3 ? Round<Format::kE4m3>(x) : Round<Format::kE5m2>(x);
    const float value = Decode(GetParam(), rounded.code);
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(value) && std::isnan(rounded.value));
    } else {
      EXPECT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(rounded.value)) << x;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Both, FormatsTest, ::testing::Values(Format::kE4m3, Format::kE5m2));

}  // namespace
}  // namespace muster::fp8
