#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "trainer/model/parameter_spec.h"

// The part of a parameter that a tensor-parallel rank has.

namespace muster::model {

// A rank's place among those that split the parameters.
struct Share {
  int64_t rank = 0;
  int64_t size = 1;
};

// Throws std::invalid_argument, naming the parameter, when it does not split evenly.
std::vector<int64_t> ShardShape(const ParameterSpec& spec, const Share& share);

// A view of the whole tensor: [blocks, share of a block, ...] in place of the dimension that is
// split, whose elements in order are the shard's.
at::Tensor ShardView(const at::Tensor& whole, const Split& split, const Share& share);

// fp32 initial values (init.h) of the shard: what the whole tensor would have there.
at::Tensor InitialShard(uint64_t seed, const ParameterSpec& spec, const Share& share);

}  // namespace muster::model
