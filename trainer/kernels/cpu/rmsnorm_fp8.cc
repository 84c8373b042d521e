#include "trainer/kernels/rmsnorm_fp8.h"

#include <cmath>

#include "trainer/kernels/cpu/fp8_store.h"
#include "trainer/kernels/cpu/vectorize.h"

namespace muster::kernels {

void RmsNormFp8(const RmsNormShape& shape, const Bfloat16* x, const Bfloat16* weight, float* rstd,
                const Fp8Output& y) {
  const Fp8Store store(y, shape.rows, shape.columns);
  const int64_t columns = shape.columns;
  const float offset = static_cast<float>(shape.offset);
  for (int64_t row = 0; row < shape.rows; ++row, x += columns) {
    const float squares =
        SumInLanes<float>(columns, [x](int64_t i) { return float(x[i]) * float(x[i]); });
    const float scale =
        1 / std::sqrt(squares / static_cast<float>(columns) + static_cast<float>(shape.epsilon));
    for (int64_t i = 0; i < columns; ++i) {
      store.Put(row, i, float(x[i]) * scale * (offset + float(weight[i])));
    }
    rstd[row] = scale;
  }
}

void RmsNormBackwardFp8(const RmsNormShape& shape, const Bfloat16* dy, const Bfloat16* x,
                        const Bfloat16* weight, const float* rstd, Bfloat16* dx, float* dweight,
                        const Fp8Output& dx_fp8) {
  RmsNormBackward(shape, dy, x, weight, rstd, dx, dweight);
  const Fp8Store store(dx_fp8, shape.rows, shape.columns);
  for (int64_t row = 0; row < shape.rows; ++row) {
    for (int64_t i = 0; i < shape.columns; ++i) {
      store.Put(row, i, float(dx[row * shape.columns + i]));
    }
  }
}

}  // namespace muster::kernels
