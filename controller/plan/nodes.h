#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "muster/v1/job.pb.h"

// Which hosts take part, with how many ranks, and where each rank sits. Pure.

namespace muster::plan {

struct ModelShape;

// The first `nnodes` hosts that are no spares, in hostfile order, each with `nproc_per_node` ranks
// or one a slot. InvalidArgument, or FailedPrecondition when a host's slots are not known yet; both
// name the host and its line.
absl::StatusOr<std::vector<v1::NodePlan>> SelectNodes(const v1::JobSpec& spec);

uint32_t World(const std::vector<v1::NodePlan>& nodes);

// "--nnodes 2 (16 slots)", "--nproc-per-node 4 (12 slots)": the largest parts of these nodes that
// fit `parallel`.
std::vector<std::string> UsableParts(const std::vector<v1::NodePlan>& nodes,
                                     const v1::Parallel& parallel,
                                     const ModelShape* model = nullptr);

// Ranks in Megatron's order tp-cp-dp-pp, tp fastest, over `nodes` in order.
void PlaceRanks(v1::Plan& plan);

// What is allowed and probably not wanted: unequal slots, TP groups that cross hosts, mixed types,
// odd host names.
std::vector<std::string> PlanWarnings(const v1::Plan& plan, const v1::Inventory& inventory);

}  // namespace muster::plan
