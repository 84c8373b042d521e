#pragma once

#include <cstdint>

namespace muster::data {

// Which samples a data-parallel rank takes, in Megatron's order: the samples of an iteration are
// dealt in rounds of micro_batch_size * dp_size; in each round rank r takes the r-th
// micro_batch_size of them.
struct Shard {
  int64_t micro_batch_size = 1;
  int64_t dp_size = 1;
  int64_t dp_rank = 0;

  // The first sample of this rank's micro-batch number `micro_batch`, counted from sample
  // `consumed`. The others follow.
  int64_t FirstSample(int64_t consumed, int64_t micro_batch) const {
    return consumed + (micro_batch * dp_size + dp_rank) * micro_batch_size;
  }
};

}  // namespace muster::data
