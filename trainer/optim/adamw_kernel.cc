#include "trainer/optim/adamw_kernel.h"

#include <cmath>

#include "trainer/kernels/cpu/vectorize.h"

namespace muster::optim {
namespace {

template <typename P, typename G>
MUSTER_VECTORIZE void Apply(const AdamWStep& step, int64_t count, const G* grad, P* value,
                            P* exp_avg, P* exp_avg_sq) {
  const P beta1 = P(step.beta1), rest1 = P(1 - step.beta1);
  const P beta2 = P(step.beta2), rest2 = P(1 - step.beta2);
  const P correction1 = P(step.correction1), correction2 = P(step.correction2);
  const P lr = P(step.lr), decay = P(step.weight_decay), epsilon = P(step.epsilon);
  const P scale = P(step.grad_scale);
  for (int64_t i = 0; i < count; ++i) {
    const P g = P(grad[i]) * scale;
    const P m = beta1 * exp_avg[i] + rest1 * g;
    const P v = beta2 * exp_avg_sq[i] + rest2 * g * g;
    const P update = (m / correction1) / (std::sqrt(v / correction2) + epsilon);
    value[i] -= lr * (update + decay * value[i]);
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
  }
}

template <typename G>
MUSTER_VECTORIZE double Squares(int64_t count, const G* grad) {
  return kernels::SumInLanes<double>(count, [grad](int64_t i) {
    const double g = static_cast<double>(static_cast<Accumulate<G>>(grad[i]));
    return g * g;
  });
}

}  // namespace

template <typename P, typename G>
void ApplyAdamW(const AdamWStep& step, int64_t count, const G* grad, P* value, P* exp_avg,
                P* exp_avg_sq) {
  Apply(step, count, grad, value, exp_avg, exp_avg_sq);
}

template <typename G>
double SumOfSquares(int64_t count, const G* grad) {
  return Squares(count, grad);
}

template void ApplyAdamW(const AdamWStep&, int64_t, const float*, float*, float*, float*);
template void ApplyAdamW(const AdamWStep&, int64_t, const double*, double*, double*, double*);
template void ApplyAdamW(const AdamWStep&, int64_t, const Bfloat16*, float*, float*, float*);
template double SumOfSquares(int64_t, const float*);
template double SumOfSquares(int64_t, const double*);
template double SumOfSquares(int64_t, const Bfloat16*);

}  // namespace muster::optim
