#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "trainer/model/parameter_spec.h"

namespace muster::model {

// A trained tensor, or the part of it that one tensor-parallel rank has. `value` is the fp32 master
// weight, row-major [out, in] for matrices. `grad` is the main gradient that every micro-batch adds
// to: all parameters' gradients are views of one contiguous buffer, so that data parallel ranks
// reduce them in one call.
struct Parameter {
  std::string name;  // Megatron's: decoder.layers.0.self_attention.linear_qkv.weight
  at::Tensor value;
  at::Tensor grad;
  bool decoupled_lr = false;  // word embedding and language-model head
  bool weight_decay = true;   // false for 1-D parameters
  Split split = {};
  // The gradient is this rank's tokens' alone: tensor-parallel ranks have to sum it.
  bool partial = false;
  // First and last stage of a pipeline both have it, and have to sum the gradients.
  bool tied = false;
  // Another rank has the same values (replicas of data and context parallel ranks aside), and is
  // the one that counts them in sums over the model.
  bool duplicate = false;
};

}  // namespace muster::model
