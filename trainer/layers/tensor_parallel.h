#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "trainer/parallel/communicator.h"

namespace muster::layers {

// How activations cross the border of what tensor-parallel ranks split: the linears of a block
// (qkv and fc1 by outputs, proj and fc2 by inputs), the rows of embedding and head. Outside, every
// rank has all T tokens; with sequence parallelism its own T / size of them, in rank order. Forward
// and backward are each other's reverse, so the gradients cross by the same two calls: what was
// entered is left, what was left is entered. A rank alone: both do nothing. One thread.
class TensorParallel {
 public:
  TensorParallel() = default;
  // `group` (may be null: this rank alone) must outlive this.
  TensorParallel(parallel::Communicator* group, bool sequence)
      : group_(group == nullptr || group->size() == 1 ? nullptr : group),
        sequence_(group_ != nullptr && sequence) {}

  int64_t rank() const { return group_ == nullptr ? 0 : group_->rank(); }
  int64_t size() const { return group_ == nullptr ? 1 : group_->size(); }
  // Tokens are split outside.
  bool sequence() const { return sequence_; }
  // Null for a rank alone.
  parallel::Communicator* group() const { return group_; }

  // The activation of all tokens.
  at::Tensor Enter(const at::Tensor& x_TC) const;
  // The sum of all ranks' contributions: of all tokens, or of this rank's. May use y's memory.
  at::Tensor Leave(at::Tensor y_TC) const;

 private:
  parallel::Communicator* group_ = nullptr;
  bool sequence_ = false;
};

}  // namespace muster::layers
