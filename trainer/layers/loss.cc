#include "trainer/layers/loss.h"

#include <ATen/ops/empty.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "trainer/kernels/sharded_cross_entropy.h"
#include "trainer/tensor/dtype.h"

namespace muster::layers {
namespace {

template <typename T>
void CheckLabels(const kernels::LogitShard<T>& shard, int64_t vocab_size) {
  for (int64_t row = 0; row < shard.rows; ++row) {
    const int64_t label = shard.labels[row];
    if (shard.mask[row] == 0 || (label >= 0 && label < vocab_size)) continue;
    throw std::out_of_range("label " + std::to_string(label) + " at token " + std::to_string(row) +
                            " is outside the vocabulary of " + std::to_string(vocab_size));
  }
}

template <typename T>
kernels::CrossEntropySum Sharded(const TensorParallel& tensor, const kernels::LogitShard<T>& shard,
                                 bool gradient) {
  CheckLabels(shard, shard.vocab * tensor.size());
  const at::ScalarType dtype = c10::CppTypeToScalarType<Accumulate<T>>::value;
  const at::Tensor max = at::empty({shard.rows}, dtype);
  auto* const max_data = Data<Accumulate<T>>(max);
  kernels::ShardMax(shard, max_data);
  tensor.group()->AllReduce(max, parallel::ReduceOp::kMax);
  const at::Tensor sums = at::empty({2, shard.rows}, dtype);  // sum_exp and target in one message
  auto* const sum_exp = Data<Accumulate<T>>(sums);
  auto* const target = sum_exp + shard.rows;
  kernels::ShardSums(shard, max_data, sum_exp, target);
  tensor.group()->AllReduce(sums, parallel::ReduceOp::kSum);
  if (gradient) kernels::ShardGradient(shard, max_data, sum_exp);
  kernels::CrossEntropySum total;
  for (int64_t row = 0; row < shard.rows; ++row) {
    const auto mask = static_cast<double>(shard.mask[row]);
    if (mask == 0) continue;
    total.loss += mask * static_cast<double>(std::log(sum_exp[row]) - target[row]);
    total.tokens += mask;
  }
  return total;
}

}  // namespace

kernels::CrossEntropySum CrossEntropy(const TensorParallel& tensor, const at::Tensor& logits_TV,
                                      const at::Tensor& labels_T, const at::Tensor& mask_T,
                                      bool gradient) {
  const int64_t rows = logits_TV.size(0), vocab = logits_TV.size(1);
  return DispatchFloating(logits_TV.scalar_type(), [&]<typename T>(std::type_identity<T>) {
    if (tensor.size() == 1) {
      return kernels::CrossEntropy(rows, vocab, Data<T>(logits_TV), Data<int64_t>(labels_T),
                                   Data<float>(mask_T), gradient);
    }
    return Sharded<T>(tensor,
                      {rows, vocab, tensor.rank() * vocab, Data<T>(logits_TV),
                       Data<int64_t>(labels_T), Data<float>(mask_T)},
                      gradient);
  });
}

}  // namespace muster::layers
