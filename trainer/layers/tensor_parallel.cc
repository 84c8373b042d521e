#include "trainer/layers/tensor_parallel.h"

#include <ATen/ops/empty.h>

namespace muster::layers {

at::Tensor TensorParallel::Enter(const at::Tensor& x_TC) const {
  if (!sequence_) return x_TC;
  const at::Tensor all_TC = at::empty({x_TC.size(0) * size(), x_TC.size(1)}, x_TC.options());
  group_->AllGather(all_TC, x_TC.contiguous());
  return all_TC;
}

at::Tensor TensorParallel::Leave(at::Tensor y_TC) const {
  if (group_ == nullptr) return y_TC;
  if (!sequence_) {
    group_->AllReduce(y_TC, parallel::ReduceOp::kSum);
    return y_TC;
  }
  const at::Tensor mine_TC = at::empty({y_TC.size(0) / size(), y_TC.size(1)}, y_TC.options());
  group_->ReduceScatter(mine_TC, y_TC.contiguous());
  return mine_TC;
}

}  // namespace muster::layers
