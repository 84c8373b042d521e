#include "trainer/kernels/swiglu_fp8.h"

#include <cmath>

#include "trainer/kernels/cpu/fp8_store.h"

namespace muster::kernels {
namespace {

float Sigmoid(float x) {
  return 1 / (1 + std::exp(-x));
}

}  // namespace

void SwigluForwardFp8(int64_t rows, int64_t ffn, const Bfloat16* gate_up, const Fp8Output& y) {
  const Fp8Store store(y, rows, ffn);
  for (int64_t row = 0; row < rows; ++row, gate_up += 2 * ffn) {
    for (int64_t i = 0; i < ffn; ++i) {
      const float gate = float(gate_up[i]), up = float(gate_up[ffn + i]);
      store.Put(row, i, gate * Sigmoid(gate) * up);
    }
  }
}

void SwigluBackwardFp8(int64_t rows, int64_t ffn, const Bfloat16* dy, const Bfloat16* gate_up,
                       const Fp8Output& dgate_up) {
  const Fp8Store store(dgate_up, rows, 2 * ffn);
  for (int64_t row = 0; row < rows; ++row, gate_up += 2 * ffn, dy += ffn) {
    for (int64_t i = 0; i < ffn; ++i) {
      const float gate = float(gate_up[i]), up = float(gate_up[ffn + i]), grad = float(dy[i]);
      const float sigmoid = Sigmoid(gate);
      store.Put(row, i, grad * up * sigmoid * (1 + gate * (1 - sigmoid)));
      store.Put(row, ffn + i, grad * gate * sigmoid);
    }
  }
}

}  // namespace muster::kernels
