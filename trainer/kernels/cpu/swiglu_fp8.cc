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
                       const Fp8Output& dgate_up, const Fp8Output& y_again) {
  const Fp8Store store(dgate_up, rows, 2 * ffn), again(y_again, rows, ffn);
  for (int64_t row = 0; row < rows; ++row, gate_up += 2 * ffn, dy += ffn) {
    for (int64_t i = 0; i < ffn; ++i) {
      const float gate = float(gate_up[i]), up = float(gate_up[ffn + i]), grad = float(dy[i]);
      const float sigmoid = Sigmoid(gate);
      store.Put(row, i, grad * up * sigmoid * (1 + gate * (1 - sigmoid)));
      store.Put(row, ffn + i, grad * gate * sigmoid);
      again.Put(row, i, gate * sigmoid * up);
    }
  }
}

void SwigluBackwardAgain(int64_t rows, int64_t ffn, const Bfloat16* dy, const Bfloat16* gate_up,
                         Bfloat16* dgate_up, Bfloat16* y_again) {
  for (int64_t row = 0; row < rows; ++row, gate_up += 2 * ffn, dgate_up += 2 * ffn) {
    for (int64_t i = 0; i < ffn; ++i) {
      const float gate = float(gate_up[i]), up = float(gate_up[ffn + i]);
      const float grad = float(dy[row * ffn + i]), sigmoid = Sigmoid(gate);
      dgate_up[i] = Bfloat16(grad * up * sigmoid * (1 + gate * (1 - sigmoid)));
      dgate_up[ffn + i] = Bfloat16(grad * gate * sigmoid);
      if (y_again != nullptr) y_again[row * ffn + i] = Bfloat16(gate * sigmoid * up);
    }
  }
}

}  // namespace muster::kernels
