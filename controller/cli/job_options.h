#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "controller/cli/command.h"
#include "controller/cli/machine_options.h"
#include "controller/plan/recipe.h"
#include "muster/v1/job.pb.h"

// What `submit` and `plan` have in common: the flags that describe a job.

namespace muster::cli {

struct JobFlags {
  std::string recipe;
  MachineFlags machines;
  std::string transport;
  std::string output;  // folder that gets <time>_<name>/
  std::vector<std::string> skip;
  std::optional<v1::PortRange> port_range;
  std::optional<google::protobuf::Duration> check_timeout;
  std::vector<std::string> flags;  // NAME or NAME=VALUE of muster-train
  plan::Overrides overrides;
};

// "29500-29600", or one port.
absl::StatusOr<v1::PortRange> ParsePortRange(std::string_view text);

// Adds them to a subcommand; `flags` outlives the app.
void AddJobFlags(CLI::App* app, JobFlags* flags);

// The job that the command line describes, complete but for what only a controller knows. Reads the
// recipe and the hostfile. InvalidArgument: what is wrong, several lines for several errors, each
// with its place.
absl::StatusOr<v1::JobSpec> MakeJobSpec(const JobFlags& flags, const Invocation& invocation);

}  // namespace muster::cli
