#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace muster::model {

// A trained tensor. `value` is the fp32 master weight, row-major [out, in] for matrices. `grad` is
// the main gradient that every micro-batch adds to: all parameters' gradients are views of one
// contiguous buffer, so that data parallel ranks reduce them in one call.
struct Parameter {
  std::string name;  // Megatron's: decoder.layers.0.self_attention.linear_qkv.weight
  at::Tensor value;
  at::Tensor grad;
  bool decoupled_lr = false;  // word embedding and language-model head
  bool weight_decay = true;   // false for 1-D parameters
};

}  // namespace muster::model
