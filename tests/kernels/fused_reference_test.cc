#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/kernels/kernel_inputs.h"
#include "trainer/kernels/fp8_cast.h"
#include "trainer/kernels/rmsnorm.h"
#include "trainer/kernels/rmsnorm_fp8.h"
#include "trainer/kernels/swiglu.h"
#include "trainer/kernels/swiglu_fp8.h"

// The references of the fused kernels against the plain kernels in fp32, followed by the plain
// cast.

namespace muster::kernels {
namespace {

using fp8::Format;

constexpr int64_t kRows = 37, kColumns = 96;
constexpr float kScale = 61.5f;

std::vector<float> ToFloats(const std::vector<Bfloat16>& values) {
  std::vector<float> floats;
  for (const Bfloat16 x : values) floats.push_back(static_cast<float>(x));
  return floats;
}

// An Fp8Output on the host.
struct Output {
  explicit Output(Format output_format, int64_t output_columns)
      : format(output_format), columns(output_columns) {}

  Fp8Output get() { return {format, &kScale, codes.data(), transposed.data(), &scale_inv, &amax}; }
  // What the plain cast makes of `values`; codes may be neighbours where exponentials differ.
  void ExpectCastOf(const std::vector<float>& values) {
    std::vector<uint8_t> expected(values.size());
    const auto count = static_cast<int64_t>(values.size());
    CastToFp8<float>(count, values.data(), kScale, format, expected.data(), nullptr);
    int different = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      different += codes[i] != expected[i];
      ASSERT_LE(std::abs(int{codes[i]} - int{expected[i]}), 1) << i;
      const size_t row = i / static_cast<size_t>(columns),
                   column = i % static_cast<size_t>(columns);
      ASSERT_EQ(transposed[column * kRows + row], codes[i]) << i;
    }
    EXPECT_LE(different, count / 200);
    EXPECT_NEAR(amax, Amax(count, values.data()), amax * 1e-6f);
    EXPECT_EQ(scale_inv, 1 / kScale);
  }

  Format format;
  int64_t columns;
  std::vector<uint8_t> codes = std::vector<uint8_t>(static_cast<size_t>(kRows * columns));
  std::vector<uint8_t> transposed = codes;
  float scale_inv = 0, amax = 0;
};

TEST(FusedReferenceTest, RmsNormIsNormAndCast) {
  const RmsNormShape shape{kRows, kColumns, 1e-5, 1.0};
  const auto x = Bfloat16s(Input::kRandom, kRows * kColumns, 1);
  const auto weight = Bfloat16s(Input::kRandom, kColumns, 3);
  std::vector<float> rstd(kRows), expected_rstd(kRows), y(x.size());
  Output out(Format::kE4m3, kColumns);
  RmsNormFp8(shape, x.data(), weight.data(), rstd.data(), out.get());
  RmsNormForward(shape, ToFloats(x).data(), ToFloats(weight).data(), y.data(),
                 expected_rstd.data());
  out.ExpectCastOf(y);
  EXPECT_EQ(rstd, expected_rstd);
}

TEST(FusedReferenceTest, RmsNormBackwardIsThatAndCast) {
  const RmsNormShape shape{kRows, kColumns, 1e-5, 0.0};
  const auto dy = Bfloat16s(Input::kRandom, kRows * kColumns, 7);
  const auto x = Bfloat16s(Input::kRandom, kRows * kColumns, 8);
  const auto weight = Bfloat16s(Input::kRandom, kColumns, 9);
  const std::vector<float> rstd(kRows, 0.7f);
  auto dx = Bfloat16s(Input::kRandom, kRows * kColumns, 10), expected = dx;
  std::vector<float> dweight(kColumns, 1.5f), expected_dweight = dweight;
  Output out(Format::kE5m2, kColumns);
  RmsNormBackwardFp8(shape, dy.data(), x.data(), weight.data(), rstd.data(), dx.data(),
                     dweight.data(), out.get());
  RmsNormBackward(shape, dy.data(), x.data(), weight.data(), rstd.data(), expected.data(),
                  expected_dweight.data());
  EXPECT_EQ(ToFloats(dx), ToFloats(expected));
  EXPECT_EQ(dweight, expected_dweight);
  out.ExpectCastOf(ToFloats(expected));
}

TEST(FusedReferenceTest, SwigluIsSwigluAndCast) {
  const auto gate_up = Bfloat16s(Input::kRandom, 2 * kRows * kColumns, 4);
  std::vector<float> y(static_cast<size_t>(kRows * kColumns));
  Output out(Format::kE4m3, kColumns);
  SwigluForwardFp8(kRows, kColumns, gate_up.data(), out.get());
  SwigluForward(kRows, kColumns, ToFloats(gate_up).data(), y.data());
  out.ExpectCastOf(y);
}

TEST(FusedReferenceTest, SwigluBackwardIsSwigluBackwardAndCast) {
  const auto gate_up = Bfloat16s(Input::kRandom, 2 * kRows * kColumns, 5);
  const auto dy = Bfloat16s(Input::kRandom, kRows * kColumns, 6);
  std::vector<float> dgate_up(gate_up.size());
  Output out(Format::kE5m2, 2 * kColumns);
  SwigluBackwardFp8(kRows, kColumns, dy.data(), gate_up.data(), out.get(), {});
  SwigluBackward(kRows, kColumns, ToFloats(dy).data(), ToFloats(gate_up).data(), dgate_up.data());
  out.ExpectCastOf(dgate_up);
}

}  // namespace
}  // namespace muster::kernels
