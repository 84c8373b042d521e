#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "muster/v1/job.pb.h"
#include "muster/v1/worker.pb.h"

// JobSpec (with its Inventory) -> Plan -> what each rank gets. Pure.

namespace muster::plan {

// Hosts without slots in the hostfile need the number of devices found on them: set `slots` in the
// inventory first. InvalidArgument: what does not fit, with the arithmetic and the nearest sizes
// that do. FailedPrecondition: a host's slots are unknown (the message names it).
absl::StatusOr<v1::Plan> MakePlan(const v1::JobSpec& spec);

// What is known only when an attempt starts.
struct Launch {
  uint32_t attempt = 0;
  uint32_t master_port = 0;
  std::string run_id;           // TORCHELASTIC_RUN_ID: the same for all ranks, new for each attempt
  std::string last_checkpoint;  // {last_checkpoint}; empty = none
};

// Argv with templates filled, and the environment of the torchrun contract, MUSTER_* coordinates,
// the job's [env] and secrets. The worker adds its base environment and node-local paths.
absl::StatusOr<v1::RankSpec> MakeRankSpec(const v1::JobSpec& spec, const v1::Plan& plan,
                                          uint32_t rank, const Launch& launch);

}  // namespace muster::plan
