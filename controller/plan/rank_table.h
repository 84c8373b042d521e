#pragma once

#include <string>
#include <vector>

#include "muster/v1/job.pb.h"

// The rank table, whole or folded so that a thousand ranks fit on a screen. Pure.

namespace muster::plan {

// Consecutive ranks of one pipeline stage on consecutive hosts with equally many ranks of it.
struct RankBlock {
  uint32_t first_rank = 0;
  uint32_t last_rank = 0;
  uint32_t first_node = 0;
  uint32_t last_node = 0;
  uint32_t per_host = 0;  // ranks of the block on each of its hosts
};

// Blocks that cover all ranks in order.
std::vector<RankBlock> FoldRanks(const v1::Plan& plan);

std::string WholeRankTable(const v1::Plan& plan);
std::string FoldedRankTable(const v1::Plan& plan);

}  // namespace muster::plan
