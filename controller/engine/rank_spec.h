#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <vector>

#include "controller/engine/state.h"

namespace muster::engine {

// What one rank of the job's newest attempt gets: plan::MakeRankSpec plus the names of job and
// attempt (MUSTER_JOB_ID, MUSTER_JOB_NAME, MUSTER_CONTROLLER_ID), unless the job sets them itself.
// Pure. InvalidArgument: a template that is none.
absl::StatusOr<v1::RankSpec> MakeAttemptRankSpec(const State& state, const JobRun& job,
                                                 uint32_t rank);

// OK if every rank's spec can be made.
absl::Status ValidateRankSpecs(const State& state, const JobRun& job);

// Those of node `index`, which have been validated before.
std::vector<v1::RankSpec> NodeRankSpecs(const State& state, const JobRun& job, size_t index);

}  // namespace muster::engine
