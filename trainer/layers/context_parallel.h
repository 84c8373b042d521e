#pragma once

#include <array>
#include <cstdint>

#include "trainer/parallel/communicator.h"

namespace muster::layers {

// How keys and values reach the ranks that share a sequence.
enum class ContextExchange {
  kRing,       // round from neighbour to neighbour, each while the last ones are being used
  kAllGather,  // all to all at once
};

// The ranks that share every sequence: it is cut into 2 * size equal chunks, of which rank r has
// chunks r and 2 * size - 1 - r, one behind the other, so that all have equally much causal
// attention. A rank alone: one with the whole sequence. One thread.
class ContextParallel {
 public:
  ContextParallel() = default;
  // `group` (may be null: this rank alone) must outlive this.
  ContextParallel(parallel::Communicator* group, ContextExchange exchange)
      : group_(group), exchange_(exchange) {}

  int64_t rank() const { return group_ == nullptr ? 0 : group_->rank(); }
  int64_t size() const { return group_ == nullptr ? 1 : group_->size(); }
  parallel::Communicator* group() const { return group_; }
  ContextExchange exchange() const { return exchange_; }

  static std::array<int64_t, 2> ChunksOf(int64_t rank, int64_t size) {
    return {rank, 2 * size - 1 - rank};
  }

 private:
  parallel::Communicator* group_ = nullptr;
  ContextExchange exchange_ = ContextExchange::kRing;
};

}  // namespace muster::layers
