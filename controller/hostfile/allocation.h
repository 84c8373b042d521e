#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <optional>
#include <string>

#include "muster/v1/job.pb.h"

// The hosts that a scheduler has given this session: `--hostfile auto`.
//
//   Slurm  SLURM_JOB_NODELIST; slots from SLURM_TASKS_PER_NODE, or from SLURM_GPUS_ON_NODE where
//          there is one task a node (the usual form for launchers that start the ranks themselves)
//   PBS    PBS_NODEFILE: a file with a line for each slot
//   LSF    LSB_DJOB_HOSTFILE (such a file), LSB_MCPU_HOSTS ("host slots host slots ...") or
//          LSB_HOSTS (a word for each slot)

namespace muster::hostfile {

// What the reader needs of its surroundings. A seam: tests give their own.
struct AllocationSources {
  std::function<std::optional<std::string>(const std::string& name)> get_env;
  std::function<absl::StatusOr<std::string>(const std::string& path)> read_file;

  static AllocationSources Real();
};

// Hosts in the scheduler's order; the line of a host is its number. inventory.source is the
// variable's name. InvalidArgument: no scheduler, more than one, or what it says is not understood;
// never falls back to this machine.
absl::StatusOr<v1::Inventory> ReadAllocation(const AllocationSources& sources);

}  // namespace muster::hostfile
