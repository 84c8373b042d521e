#include "trainer/kernels/adamw_fp8.h"

#include <cmath>

#include "trainer/kernels/cpu/fp8_store.h"
#include "trainer/kernels/cpu/vectorize.h"

namespace muster::kernels {

template <typename G, typename M>
void AdamWFp8(const AdamWRule& rule, int64_t rows, int64_t columns, const G* grad, float* master,
              M* exp_avg, M* exp_avg_sq, const Fp8Output& weight) {
  const Fp8Store store(weight, rows, columns);
  const float scale = (rule.clip != nullptr ? *rule.clip : 1.0f) *
                      (rule.inverse_tokens != nullptr ? *rule.inverse_tokens : 1.0f);
  for (int64_t i = 0; i < rows * columns; ++i) {
    const float g = static_cast<float>(grad[i]) * scale;
    const float m = rule.beta1 * static_cast<float>(exp_avg[i]) + (1 - rule.beta1) * g;
    const float v = rule.beta2 * static_cast<float>(exp_avg_sq[i]) + (1 - rule.beta2) * g * g;
    const float update = (m / rule.correction1) / (std::sqrt(v / rule.correction2) + rule.epsilon);
    master[i] -= rule.lr * (update + rule.weight_decay * master[i]);
    exp_avg[i] = M(m);
    exp_avg_sq[i] = M(v);
    store.Put(i / columns, i % columns, master[i]);
  }
}

template <typename G>
void AddSquares(int64_t count, const G* grad, double* sum) {
  *sum += SumInLanes<double>(count, [grad](int64_t i) {
    const double g = static_cast<double>(static_cast<float>(grad[i]));
    return g * g;
  });
}

#define MUSTER_INSTANTIATE(G, M)                                                       \
  template void AdamWFp8(const AdamWRule&, int64_t, int64_t, const G*, float*, M*, M*, \
                         const Fp8Output&);
MUSTER_INSTANTIATE(float, float)
MUSTER_INSTANTIATE(float, Bfloat16)
MUSTER_INSTANTIATE(Bfloat16, float)
MUSTER_INSTANTIATE(Bfloat16, Bfloat16)
#undef MUSTER_INSTANTIATE
template void AddSquares(int64_t, const float*, double*);
template void AddSquares(int64_t, const Bfloat16*, double*);

}  // namespace muster::kernels
