#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>

#include "muster/v1/job.pb.h"

namespace muster::cli {

// Lets the trainer itself judge the flags of a planned job before any machine is asked: rank 0's
// command line and environment with --print-config, on this machine. InvalidArgument: what
// muster-train says. OK for other commands, and when the program is not here or can't say
// (preflight looks for it on the nodes). Takes half a second.
absl::Status CheckTrainerFlags(const v1::JobSpec& spec, const v1::Plan& plan);

// The same for who only plans: a layout that this trainer does not run, where nothing else is
// wrong, is no error but its remark ("" = none).
absl::StatusOr<std::string> TrainerRemark(const v1::JobSpec& spec, const v1::Plan& plan);

}  // namespace muster::cli
