#include "trainer/kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "trainer/kernels/cpu/vectorize.h"

namespace muster::kernels {
namespace {

// -log(softmax(row)[label]); with kGradient the row becomes mask * (softmax - onehot).
template <bool kGradient, typename T>
MUSTER_VECTORIZE Accumulate<T> Row(int64_t vocab, T* row, int64_t label, Accumulate<T> mask) {
  using A = Accumulate<T>;
  const A max = MaxInLanes<A>(vocab, [=](int64_t i) { return A(row[i]); });
  const A target = A(row[label]);
  const A sum = SumInLanes<A>(vocab, [=](int64_t i) { return Exp(A(row[i]) - max); });
  if constexpr (kGradient) {
    const A factor = mask / sum;
    for (int64_t i = 0; i < vocab; ++i) row[i] = T(Exp(A(row[i]) - max) * factor);
    row[label] = T(Exp(target - max) * factor - mask);
  }
  return std::log(sum) - (target - max);
}

}  // namespace

template <typename T>
CrossEntropySum CrossEntropy(int64_t rows, int64_t vocab, T* logits, const int64_t* labels,
                             const float* mask, bool gradient) {
  CrossEntropySum total;
  for (int64_t row = 0; row < rows; ++row, logits += vocab) {
    if (mask[row] == 0) {
      if (gradient) std::fill_n(logits, vocab, T(0.0f));
      continue;
    }
    if (labels[row] < 0 || labels[row] >= vocab) {
      throw std::out_of_range("label " + std::to_string(labels[row]) + " at token " +
                              std::to_string(row) + " is outside the vocabulary of " +
                              std::to_string(vocab));
    }
    const Accumulate<T> loss = gradient ? Row<true>(vocab, logits, labels[row], mask[row])
                                        : Row<false>(vocab, logits, labels[row], mask[row]);
    total.loss += static_cast<double>(mask[row]) * static_cast<double>(loss);
    total.tokens += static_cast<double>(mask[row]);
  }
  return total;
}

#define MUSTER_INSTANTIATE(T) \
  template CrossEntropySum CrossEntropy(int64_t, int64_t, T*, const int64_t*, const float*, bool);
MUSTER_INSTANTIATE(float)
MUSTER_INSTANTIATE(double)
MUSTER_INSTANTIATE(Bfloat16)
#undef MUSTER_INSTANTIATE

}  // namespace muster::kernels
