#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "trainer/fp8/scaling.h"
#include "trainer/kernels/fp8_output.h"

namespace muster::kernels {

// Writes an Fp8Output of [rows, columns] element by element, for the fused kernels' references.
class Fp8Store {
 public:
  Fp8Store(const Fp8Output& out, int64_t rows, int64_t columns)
      : out_(out), rows_(rows), columns_(columns) {
    if (out.scale_inv != nullptr) *out.scale_inv = fp8::ScaleInverse(*out.scale);
  }
  void Put(int64_t row, int64_t column, float value) const {
    if (out_.scale != nullptr) {
      const uint8_t code = fp8::Encode(out_.format, value * *out_.scale);
      if (out_.codes != nullptr) out_.codes[row * columns_ + column] = code;
      if (out_.transposed != nullptr) out_.transposed[column * rows_ + row] = code;
    }
    if (out_.amax != nullptr && !std::isnan(value)) {
      *out_.amax = std::max(*out_.amax, std::fabs(value));
    }
  }

 private:
  const Fp8Output& out_;
  int64_t rows_, columns_;
};

}  // namespace muster::kernels
