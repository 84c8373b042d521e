#include "trainer/kernels/residual_rmsnorm_fp8.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "trainer/kernels/cpu/fp8_store.h"
#include "trainer/kernels/cpu/vectorize.h"

namespace muster::kernels {

namespace {

// Calls put(row, column, y) for each element, with y in fp32.
template <typename Put>
void Normalize(const RmsNormShape& shape, const Bfloat16* x, const Bfloat16* residual,
               const Bfloat16* weight, Bfloat16* sum, float* rstd, const Put& put) {
  const int64_t columns = shape.columns;
  const float offset = static_cast<float>(shape.offset);
  std::vector<Bfloat16> added(static_cast<size_t>(columns));
  for (int64_t row = 0; row < shape.rows; ++row, x += columns) {
    const Bfloat16* const other = residual == nullptr ? nullptr : residual + row * columns;
    Bfloat16* const out = added.data();
    for (int64_t i = 0; i < columns; ++i) {
      out[i] = other == nullptr ? x[i] : Bfloat16(float(x[i]) + float(other[i]));
    }
    const float squares =
        SumInLanes<float>(columns, [out](int64_t i) { return float(out[i]) * float(out[i]); });
    const float scale =
        1 / std::sqrt(squares / static_cast<float>(columns) + static_cast<float>(shape.epsilon));
    for (int64_t i = 0; i < columns; ++i) {
      put(row, i, float(out[i]) * scale * (offset + float(weight[i])));
    }
    if (sum != nullptr) std::copy(added.begin(), added.end(), sum + row * columns);
    rstd[row] = scale;
  }
}

}  // namespace

void ResidualRmsNorm(const RmsNormShape& shape, const Bfloat16* x, const Bfloat16* residual,
                     const Bfloat16* weight, Bfloat16* sum, float* rstd, Bfloat16* y) {
  Normalize(shape, x, residual, weight, sum, rstd, [&](int64_t row, int64_t column, float value) {
    y[row * shape.columns + column] = Bfloat16(value);
  });
}

void ResidualRmsNormFp8(const RmsNormShape& shape, const Bfloat16* x, const Bfloat16* residual,
                        const Bfloat16* weight, Bfloat16* sum, float* rstd, const Fp8Output& y) {
  const Fp8Store store(y, shape.rows, shape.columns);
  Normalize(shape, x, residual, weight, sum, rstd,
            [&](int64_t row, int64_t column, float value) { store.Put(row, column, value); });
}

}  // namespace muster::kernels
