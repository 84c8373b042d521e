#pragma once

#include <cstdint>

#include "trainer/tensor/bfloat16.h"

// Masked cross entropy over rows of V logits, in Accumulate<T>.

namespace muster::kernels {

struct CrossEntropySum {
  double loss = 0;    // sum of mask * (log(sum(exp(logits))) - logits[label])
  double tokens = 0;  // sum of the mask
};

// With `gradient`, overwrites logits by d(loss sum)/d(logits) = mask * (softmax - onehot). A row
// with mask 0 counts for nothing, whatever its label; any other label outside [0, V) throws
// std::out_of_range, which names its row.
template <typename T>
CrossEntropySum CrossEntropy(int64_t rows, int64_t vocab, T* logits, const int64_t* labels,
                             const float* mask, bool gradient);

}  // namespace muster::kernels
