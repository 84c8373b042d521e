#pragma once

#include <absl/status/status.h>

#include <string_view>
#include <vector>

#include "controller/plan/planner.h"
#include "muster/v1/job.pb.h"

// The environment of a rank: torchrun's contract, MUSTER_* coordinates, the job's own variables and
// secrets. The table for users is in docs/recipe.md.

namespace muster::plan {

struct Launch;

// Can a process have it, and does it look like a name?
bool IsVariableName(std::string_view name);
// Part of the contract, or ours by its prefix: a job may not set it.
bool IsSetByMuster(std::string_view name);

// The job's [env] and secrets: names that a shell can use, no name twice, none that the contract
// sets.
absl::Status CheckEnvironment(const v1::JobSpec& spec);

// Everything that the controller knows to set for `rank`, sorted by name. The job's own variables
// win over our defaults, and CheckEnvironment has made sure that they do not meet the contract.
std::vector<v1::EnvVar> RankEnvironment(const v1::JobSpec& spec, const v1::Plan& plan,
                                        uint32_t rank, const Launch& launch);

}  // namespace muster::plan
