#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <string_view>

#include "muster/v1/job.pb.h"

// How much memory a device has: as the user says, else by the type= of the hosts. Pure.

namespace muster::plan {

struct DeviceMemory {
  double bytes = 0;
  std::string source;  // "--device-memory", "type=H200 of gpu01"
};

// "139GiB", "80G", "81559MiB": binary units, as nvidia-smi counts and as vendors name their cards;
// a number from 1 MiB to 1 TiB.
absl::StatusOr<double> ParseMemorySize(std::string_view text);

// By a name such as "H200", "NVIDIA-H100-80GB-HBM3", "A800-80G": a size in the name, else a table
// of models.
std::optional<double> MemoryOfType(std::string_view type);

// The smallest of the plan's hosts; nothing if no host's type says it.
std::optional<DeviceMemory> MemoryOfHosts(const v1::Plan& plan);

}  // namespace muster::plan
