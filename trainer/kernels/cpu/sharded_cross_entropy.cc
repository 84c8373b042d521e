#include "trainer/kernels/sharded_cross_entropy.h"

#include <algorithm>

#include "trainer/kernels/cpu/vectorize.h"

namespace muster::kernels {
namespace {

template <typename T>
MUSTER_VECTORIZE Accumulate<T> RowMax(int64_t vocab, const T* row) {
  using A = Accumulate<T>;
  return MaxInLanes<A>(vocab, [=](int64_t i) { return A(row[i]); });
}

template <typename T>
MUSTER_VECTORIZE Accumulate<T> RowSum(int64_t vocab, const T* row, Accumulate<T> max) {
  using A = Accumulate<T>;
  return SumInLanes<A>(vocab, [=](int64_t i) { return Exp(A(row[i]) - max); });
}

template <typename T>
MUSTER_VECTORIZE void RowSoftmax(int64_t vocab, T* row, Accumulate<T> max, Accumulate<T> factor) {
  using A = Accumulate<T>;
  for (int64_t i = 0; i < vocab; ++i) row[i] = T(Exp(A(row[i]) - max) * factor);
}

// The label's place in the shard's row, or -1.
template <typename T>
int64_t LabelHere(const LogitShard<T>& shard, int64_t row) {
  const int64_t place = shard.labels[row] - shard.first;
  return place >= 0 && place < shard.vocab ? place : -1;
}

}  // namespace

template <typename T>
void ShardMax(const LogitShard<T>& shard, Accumulate<T>* max) {
  for (int64_t row = 0; row < shard.rows; ++row) {
    max[row] = RowMax(shard.vocab, shard.logits + row * shard.vocab);
  }
}

template <typename T>
void ShardSums(const LogitShard<T>& shard, const Accumulate<T>* max, Accumulate<T>* sum_exp,
               Accumulate<T>* target) {
  using A = Accumulate<T>;
  for (int64_t row = 0; row < shard.rows; ++row) {
    const T* const logits = shard.logits + row * shard.vocab;
    const int64_t label = shard.mask[row] == 0 ? -1 : LabelHere(shard, row);
    sum_exp[row] = RowSum(shard.vocab, logits, max[row]);
    target[row] = label < 0 ? A(0) : A(logits[label]) - max[row];
  }
}

template <typename T>
void ShardGradient(const LogitShard<T>& shard, const Accumulate<T>* max,
                   const Accumulate<T>* sum_exp) {
  using A = Accumulate<T>;
  for (int64_t row = 0; row < shard.rows; ++row) {
    T* const logits = shard.logits + row * shard.vocab;
    const A mask = shard.mask[row];
    if (mask == 0) {
      std::fill_n(logits, shard.vocab, T(0.0f));
      continue;
    }
    const int64_t label = LabelHere(shard, row);
    const A factor = mask / sum_exp[row];
    const A target = label < 0 ? A(0) : A(logits[label]);
    RowSoftmax(shard.vocab, logits, max[row], factor);
    if (label >= 0) logits[label] = T(Exp(target - max[row]) * factor - mask);
  }
}

#define MUSTER_INSTANTIATE(T)                                                         \
  template void ShardMax(const LogitShard<T>&, Accumulate<T>*);                       \
  template void ShardSums(const LogitShard<T>&, const Accumulate<T>*, Accumulate<T>*, \
                          Accumulate<T>*);                                            \
  template void ShardGradient(const LogitShard<T>&, const Accumulate<T>*, const Accumulate<T>*);
MUSTER_INSTANTIATE(float)
MUSTER_INSTANTIATE(double)
MUSTER_INSTANTIATE(Bfloat16)
#undef MUSTER_INSTANTIATE

}  // namespace muster::kernels
