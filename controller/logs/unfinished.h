#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/v1/control.pb.h"

namespace muster::logs {

// Ranks of an attempt whose output is not whole below `output_dir`: a part of it is only on their
// nodes, because it is still on its way or the disk here does not take it. Ascending; none for an
// attempt that never had logs, and without ranks of nodes that are gone for good. Any thread.
std::vector<uint32_t> UnfinishedRanks(const std::string& output_dir, uint32_t attempt,
                                      const v1::Plan& plan);

}  // namespace muster::logs
