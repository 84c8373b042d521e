#pragma once

#include <cstdint>
#include <vector>

#include "controller/stage/run.h"

// Who fetches from whom. Pure. The controller feeds two nodes, these feed others, at most two each
// while they fetch themselves: every node but those two gets all bytes from another one, and each
// piece goes down the tree as it comes. A node that lags feeds nobody, so that it delays only
// itself.

namespace muster::stage {

// Gives every ready node without a source one, where there is one to be had. Returns the nodes that
// have a new one.
std::vector<size_t> AssignSources(StageRun& run, int64_t now_ns);

// The node could not fetch from its source: another is looked for.
void BanSource(StageRun& run, size_t node);

// Takes the children away from nodes that lag far behind or have gone, and gives nodes that get
// nothing another source. Their sources are kNoSource after it.
void ReplanSlow(StageRun& run, int64_t now_ns);

// Whether the controller feeds it because it reaches no other node.
bool ThroughController(const StageRun& run, size_t node);

}  // namespace muster::stage
