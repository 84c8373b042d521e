#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "controller/engine/state.h"

namespace muster::engine {

// TORCHELASTIC_RUN_ID: the same for all ranks, new for each attempt, and no other controller's.
std::string RunId(const State& state, const JobRun& job);

// What one rank of the job's newest attempt gets: plan::MakeRankSpec plus MUSTER_JOB_ID and
// MUSTER_CONTROLLER_ID, which no plan knows. Pure. InvalidArgument: a template that is none.
absl::StatusOr<v1::RankSpec> MakeAttemptRankSpec(const State& state, const JobRun& job,
                                                 uint32_t rank);

// OK if every rank's spec can be made, and a node's fit into one message.
absl::Status ValidateRankSpecs(const State& state, const JobRun& job);

// Those of node `index`, which have been validated before.
std::vector<v1::RankSpec> NodeRankSpecs(const State& state, const JobRun& job, size_t index);

}  // namespace muster::engine
