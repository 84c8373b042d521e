#include "trainer/kernels/swiglu.h"

#include "trainer/kernels/cpu/vectorize.h"

namespace muster::kernels {
namespace {

template <typename T>
MUSTER_VECTORIZE void Forward(int64_t rows, int64_t ffn, const T* gate_up, T* y) {
  using A = Accumulate<T>;
  for (int64_t row = 0; row < rows; ++row, gate_up += 2 * ffn, y += ffn) {
    for (int64_t i = 0; i < ffn; ++i) {
      const A gate = A(gate_up[i]);
      y[i] = T(gate / (1 + Exp(-gate)) * A(gate_up[ffn + i]));
    }
  }
}

template <typename T>
MUSTER_VECTORIZE void Backward(int64_t rows, int64_t ffn, const T* dy, const T* gate_up,
                               T* dgate_up) {
  using A = Accumulate<T>;
  for (int64_t row = 0; row < rows; ++row, gate_up += 2 * ffn, dgate_up += 2 * ffn, dy += ffn) {
    for (int64_t i = 0; i < ffn; ++i) {
      const A gate = A(gate_up[i]), up = A(gate_up[ffn + i]), grad = A(dy[i]);
      const A sigmoid = 1 / (1 + Exp(-gate));
      dgate_up[i] = T(grad * up * sigmoid * (1 + gate * (1 - sigmoid)));
      dgate_up[ffn + i] = T(grad * gate * sigmoid);
    }
  }
}

}  // namespace

template <typename T>
void SwigluForward(int64_t rows, int64_t ffn, const T* gate_up, T* y) {
  Forward(rows, ffn, gate_up, y);
}

template <typename T>
void SwigluBackward(int64_t rows, int64_t ffn, const T* dy, const T* gate_up, T* dgate_up) {
  Backward(rows, ffn, dy, gate_up, dgate_up);
}

#define MUSTER_INSTANTIATE(T)                                  \
  template void SwigluForward(int64_t, int64_t, const T*, T*); \
  template void SwigluBackward(int64_t, int64_t, const T*, const T*, T*);
MUSTER_INSTANTIATE(float)
MUSTER_INSTANTIATE(double)
MUSTER_INSTANTIATE(Bfloat16)
#undef MUSTER_INSTANTIATE

}  // namespace muster::kernels
