#pragma once

#include <cstdint>

#include "trainer/tensor/bfloat16.h"

// Cross entropy (cross_entropy.h) of rows whose logits lie on several ranks: `vocab` of them here,
// the first one being the vocabulary's `first`. Between the steps the ranks combine what each
// found: the largest of max, the sums of sum_exp and target. Rows with mask 0 take no part,
// whatever their label; the labels of the others lie in the whole vocabulary (not checked).

namespace muster::kernels {

template <typename T>
struct LogitShard {
  int64_t rows;
  int64_t vocab;
  int64_t first;
  T* logits;              // [rows, vocab]
  const int64_t* labels;  // [rows]
  const float* mask;      // [rows]
};

// max[row]: the largest logit.
template <typename T>
void ShardMax(const LogitShard<T>& shard, Accumulate<T>* max);

// sum_exp[row] of exp(logit - max[row]); target[row]: the label's logit - max[row], 0 when it is
// not here.
template <typename T>
void ShardSums(const LogitShard<T>& shard, const Accumulate<T>* max, Accumulate<T>* sum_exp,
               Accumulate<T>* target);

// Overwrites the logits by mask * (softmax - onehot).
template <typename T>
void ShardGradient(const LogitShard<T>& shard, const Accumulate<T>* max,
                   const Accumulate<T>* sum_exp);

}  // namespace muster::kernels
