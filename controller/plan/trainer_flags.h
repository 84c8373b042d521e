#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "controller/plan/sizes.h"
#include "muster/v1/job.pb.h"

// muster-train's command line. The planner owns the parallel and batch flags, in Megatron's names:
// it adds those that the command does not have, and takes the sizes of those that it has.
// Of the others it checks those that it reads itself (check_flags.cc).

namespace muster::plan {

// True if argv[0]'s base name is muster-train.
bool IsTrainer(const v1::JobSpec& spec);

// The sizes of the job: [parallel] and its flags on the command line of submit, completed by size
// flags that the trainer's command has itself (`-- muster-train --micro-batch-size 1 ...`).
// InvalidArgument if two places disagree.
absl::StatusOr<v1::Parallel> TrainerParallel(const v1::JobSpec& spec);

// InvalidArgument for a flag that the planner reads and whose value muster-train can't take ("abc"
// layers), and for a size of [parallel] among the flags.
absl::Status CheckModelFlags(const v1::JobSpec& spec);

// The whole argv of a trainer rank: command, missing size flags, [flags].
std::vector<std::string> TrainerArgv(const v1::JobSpec& spec, const Sizes& sizes);

}  // namespace muster::plan
