#pragma once

#include <ATen/core/Tensor.h>

namespace muster::data {

// One micro-batch. B = micro-batch size, S = sequence length.
struct Batch {
  at::Tensor tokens_BS;     // int64
  at::Tensor labels_BS;     // int64, already shifted: the label of position i is the token at i + 1
  at::Tensor loss_mask_BS;  // float32, 1 = counts
};

}  // namespace muster::data
