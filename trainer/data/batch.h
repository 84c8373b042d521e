#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace muster::data {

// One micro-batch, only to be read: its tensors may share memory with each other and with those of
// other batches. B = micro-batch size, S = sequence length.
struct Batch {
  at::Tensor tokens_BS;     // int64
  at::Tensor labels_BS;     // int64, already shifted: the label of position i is the token at i + 1
  at::Tensor loss_mask_BS;  // float32, 1 = counts
  // int64: the position of each token for its rotary angles; undefined: 0 .. S-1 in every row.
  at::Tensor position_ids_BS = {};
  // Attention stays within segments: where each begins in the row of all B * S tokens, and the end
  // (Megatron's cu_seqlens). Every row begins a segment. Empty: a segment is a row.
  std::vector<int32_t> cu_seqlens = {};
};

}  // namespace muster::data
