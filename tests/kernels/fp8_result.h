#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/kernels/device_buffer.h"
#include "trainer/kernels/fp8_output.h"

namespace muster::kernels {

// An Fp8Output [rows, columns] of a reference, on the host, and one of a CUDA kernel, on the
// device; both start from rubbish with the same scale.
class Fp8Results {
 public:
  Fp8Results(int64_t rows, int64_t columns, fp8::Format format, float scale)
      : format_(format),
        count_(static_cast<size_t>(rows * columns)),
        scale_(scale),
        codes_(count_),
        transposed_(count_),
        device_floats_(std::vector<float>{scale, 0, 0}),
        device_codes_(std::vector<uint8_t>(count_, 0xa5)),
        device_transposed_(std::vector<uint8_t>(count_, 0xa5)) {}

  Fp8Output Host() {
    return {format_, &scale_, codes_.data(), transposed_.data(), &scale_inv_, &amax_};
  }
  Fp8Output Device() {
    float* const floats = device_floats_.get<float>();
    return {format_,    floats,    device_codes_.get<uint8_t>(), device_transposed_.get<uint8_t>(),
            floats + 1, floats + 2};
  }

  // Codes equal or, where sums and exponentials of different order and precision straddle a
  // rounding boundary, neighbours: that in at most `share` of all. NaN codes as a class.
  void ExpectSame(double share = 0.003) {
    const std::vector<float> floats = device_floats_.ToHost<float>();
    EXPECT_EQ(floats[1], scale_inv_);
    if (std::isinf(amax_)) {
      EXPECT_EQ(floats[2], amax_);
    } else {
      EXPECT_NEAR(floats[2], amax_, amax_ * 1e-5f);
    }
    ExpectSameCodes("codes", device_codes_.ToHost<uint8_t>(), codes_, share);
    ExpectSameCodes("transposed", device_transposed_.ToHost<uint8_t>(), transposed_, share);
  }

 private:
  // Codes in the order of their values; both zeros are 0.
  static int Ordinal(uint8_t code) { return code & 0x80 ? -(code & 0x7f) : code; }

  void ExpectSameCodes(const std::string& what, const std::vector<uint8_t>& actual,
                       const std::vector<uint8_t>& expected, double share) const {
    size_t neighbours = 0;
    for (size_t i = 0; i < actual.size(); ++i) {
      if (actual[i] == expected[i]) continue;
      const bool nan = std::isnan(fp8::Decode(format_, actual[i]));
      ASSERT_EQ(nan, std::isnan(fp8::Decode(format_, expected[i])))
          << what << " " << i << ": " << int{actual[i]} << " instead of " << int{expected[i]};
      if (nan) continue;
      ASSERT_LE(std::abs(Ordinal(actual[i]) - Ordinal(expected[i])), 1)
          << what << " " << i << ": " << int{actual[i]} << " instead of " << int{expected[i]};
      neighbours += Ordinal(actual[i]) != Ordinal(expected[i]);
    }
    EXPECT_LE(static_cast<double>(neighbours), 1 + share * static_cast<double>(actual.size()))
        << what << " of " << actual.size();
  }

  fp8::Format format_;
  size_t count_;
  float scale_;
  std::vector<uint8_t> codes_, transposed_;
  float scale_inv_ = 0, amax_ = 0;
  DeviceBuffer device_floats_, device_codes_, device_transposed_;
};

}  // namespace muster::kernels
