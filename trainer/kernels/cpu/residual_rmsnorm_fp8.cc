#include "trainer/kernels/residual_rmsnorm_fp8.h"

#include <cmath>

#include "trainer/kernels/cpu/fp8_store.h"
#include "trainer/kernels/cpu/vectorize.h"

namespace muster::kernels {

void ResidualRmsNormFp8(const RmsNormShape& shape, const Bfloat16* x, const Bfloat16* residual,
                        const Bfloat16* weight, Bfloat16* sum, float* rstd, const Fp8Output& y) {
  const int64_t columns = shape.columns;
  const float offset = static_cast<float>(shape.offset);
  const Fp8Store store(y, shape.rows, columns);
  for (int64_t row = 0; row < shape.rows; ++row, x += columns, sum += columns) {
    for (int64_t i = 0; i < columns; ++i) {
      sum[i] =
          residual == nullptr ? x[i] : Bfloat16(float(x[i]) + float(residual[row * columns + i]));
    }
    const float squares =
        SumInLanes<float>(columns, [sum](int64_t i) { return float(sum[i]) * float(sum[i]); });
    const float scale =
        1 / std::sqrt(squares / static_cast<float>(columns) + static_cast<float>(shape.epsilon));
    for (int64_t i = 0; i < columns; ++i) {
      store.Put(row, i, float(sum[i]) * scale * (offset + float(weight[i])));
    }
    rstd[row] = scale;
  }
}

}  // namespace muster::kernels
