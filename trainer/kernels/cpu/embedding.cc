#include "trainer/kernels/embedding.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace muster::kernels {
namespace {

void CheckToken(int64_t token, int64_t row, int64_t vocab) {
  if (token >= 0 && token < vocab) return;
  throw std::out_of_range("token " + std::to_string(token) + " at position " + std::to_string(row) +
                          " is outside the vocabulary of " + std::to_string(vocab));
}

}  // namespace

template <typename T>
void EmbeddingForward(int64_t rows, int64_t columns, int64_t vocab, const int64_t* tokens,
                      const T* table, T* y) {
  for (int64_t row = 0; row < rows; ++row) {
    CheckToken(tokens[row], row, vocab);
    std::copy_n(table + tokens[row] * columns, columns, y + row * columns);
  }
}

template <typename T>
void EmbeddingBackward(int64_t rows, int64_t columns, int64_t vocab, const int64_t* tokens,
                       const T* dy, Accumulate<T>* dtable) {
  for (int64_t row = 0; row < rows; ++row, dy += columns) {
    CheckToken(tokens[row], row, vocab);
    Accumulate<T>* const out = dtable + tokens[row] * columns;
    for (int64_t i = 0; i < columns; ++i) out[i] += Accumulate<T>(dy[i]);
  }
}

#define MUSTER_INSTANTIATE(T)                                                              \
  template void EmbeddingForward(int64_t, int64_t, int64_t, const int64_t*, const T*, T*); \
  template void EmbeddingBackward(int64_t, int64_t, int64_t, const int64_t*, const T*,     \
                                  Accumulate<T>*);
MUSTER_INSTANTIATE(float)
MUSTER_INSTANTIATE(double)
MUSTER_INSTANTIATE(Bfloat16)
#undef MUSTER_INSTANTIATE

}  // namespace muster::kernels
