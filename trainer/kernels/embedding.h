#pragma once

#include <cstdint>

#include "trainer/tensor/bfloat16.h"

// Rows of a table by token id. A token outside [0, vocab) throws std::out_of_range, which names it.

namespace muster::kernels {

template <typename T>
void EmbeddingForward(int64_t rows, int64_t columns, int64_t vocab, const int64_t* tokens,
                      const T* table, T* y);

// Adds row i of dy to row tokens[i] of dtable, in order.
template <typename T>
void EmbeddingBackward(int64_t rows, int64_t columns, int64_t vocab, const int64_t* tokens,
                       const T* dy, Accumulate<T>* dtable);

}  // namespace muster::kernels
