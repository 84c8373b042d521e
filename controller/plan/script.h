#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "muster/v1/job.pb.h"

// A plan as plain bash, so that nobody has to trust us: what would run, where, with which
// environment. It really starts the job, and says in its head what it lacks. Pure.

namespace muster::plan {

struct ScriptOptions {
  uint32_t master_port = 29500;  // muster takes a free one on the head for each attempt
};

// One ssh to each host with a here-document for all its ranks; `LOCAL=1 bash SCRIPT` starts all of
// them on this machine instead. Secrets are not written: the script takes them from its own
// environment. InvalidArgument for hosts that muster reaches by a command of the user's; hosts of
// the other transports are named in the head.
absl::StatusOr<std::string> RenderScript(const v1::JobSpec& spec, const v1::Plan& plan,
                                         const ScriptOptions& options);

}  // namespace muster::plan
