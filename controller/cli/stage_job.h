#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "muster/v1/control.pb.h"

// `muster submit --stage DIR`: what the job's hosts get, and how the job uses it.

namespace muster::cli {

// Makes the job run from the staged folder: its own working folder if that lies in DIR, else DIR
// itself. A trainer's program is taken from DIR/bin if it is there; then the working folder stays.
// Reads the file system.
// InvalidArgument when DIR is no folder. The content id is still to be set.
absl::Status UseStaged(const std::string& folder, v1::JobSpec& spec);

// The transfer to the hosts of the job: those of its plan (null: all) and its spares.
v1::StageRequest StageRequestFor(const v1::JobSpec& spec, const v1::Plan* plan);

// Why the job can't start after this end of the transfer; OK: every host has the tree.
absl::Status StagedEverywhere(const v1::StageResponse& end);

}  // namespace muster::cli
