#pragma once

#include <string>
#include <vector>

#include "controller/why/why.h"

// Thousands of ranks in a few lines. Pure.

namespace muster::why {

// What the rank did at the end of the job, or does now.
std::string Doing(const v1::RankStatus& status);

// Ranks with equal `doing` and the same last line but for numbers, largest group first. Beyond
// `most` groups the rest is told as one without a line.
std::vector<RankGroup> GroupRanks(const std::vector<const v1::RankView*>& ranks, const Words& words,
                                  int64_t first_failure_ns, size_t most);

}  // namespace muster::why
