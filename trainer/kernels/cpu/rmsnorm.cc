#include "trainer/kernels/rmsnorm.h"

#include <cmath>

#include "trainer/kernels/cpu/vectorize.h"

namespace muster::kernels {
namespace {

template <typename T>
MUSTER_VECTORIZE void Forward(const RmsNormShape& shape, const T* x, const T* weight, T* y,
                              Accumulate<T>* rstd) {
  using A = Accumulate<T>;
  const int64_t columns = shape.columns;
  const A offset = static_cast<A>(shape.offset);
  for (int64_t row = 0; row < shape.rows; ++row, x += columns, y += columns) {
    const A sum = SumInLanes<A>(columns, [x](int64_t i) { return A(x[i]) * A(x[i]); });
    const A scale = 1 / std::sqrt(sum / static_cast<A>(columns) + static_cast<A>(shape.epsilon));
    for (int64_t i = 0; i < columns; ++i) y[i] = T(A(x[i]) * scale * (offset + A(weight[i])));
    rstd[row] = scale;
  }
}

template <typename T>
MUSTER_VECTORIZE void Backward(const RmsNormShape& shape, const T* dy, const T* x, const T* weight,
                               const Accumulate<T>* rstd, T* dx, Accumulate<T>* dweight) {
  using A = Accumulate<T>;
  const int64_t columns = shape.columns;
  const A offset = static_cast<A>(shape.offset);
  for (int64_t row = 0; row < shape.rows; ++row, x += columns, dy += columns, dx += columns) {
    const A scale = rstd[row];
    const A dot = SumInLanes<A>(
        columns, [=](int64_t i) { return A(dy[i]) * (offset + A(weight[i])) * A(x[i]); });
    // d(rstd)/dx contributes along x itself: rstd^3 * x * mean(dy * gamma * x).
    const A along = dot * scale * scale / static_cast<A>(columns);
    for (int64_t i = 0; i < columns; ++i) {
      const A normal = A(dy[i]) * (offset + A(weight[i]));
      dx[i] = T(A(dx[i]) + scale * (normal - A(x[i]) * along));
      dweight[i] += A(dy[i]) * A(x[i]) * scale;
    }
  }
}

}  // namespace

template <typename T>
void RmsNormForward(const RmsNormShape& shape, const T* x, const T* weight, T* y,
                    Accumulate<T>* rstd) {
  Forward(shape, x, weight, y, rstd);
}

template <typename T>
void RmsNormBackward(const RmsNormShape& shape, const T* dy, const T* x, const T* weight,
                     const Accumulate<T>* rstd, T* dx, Accumulate<T>* dweight) {
  Backward(shape, dy, x, weight, rstd, dx, dweight);
}

#define MUSTER_INSTANTIATE(T)                                                                \
  template void RmsNormForward(const RmsNormShape&, const T*, const T*, T*, Accumulate<T>*); \
  template void RmsNormBackward(const RmsNormShape&, const T*, const T*, const T*,           \
                                const Accumulate<T>*, T*, Accumulate<T>*);
MUSTER_INSTANTIATE(float)
MUSTER_INSTANTIATE(double)
MUSTER_INSTANTIATE(Bfloat16)
#undef MUSTER_INSTANTIATE

}  // namespace muster::kernels
