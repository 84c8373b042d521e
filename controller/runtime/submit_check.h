#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <optional>
#include <string>

#include "muster/v1/job.pb.h"

namespace muster::runtime {

struct CheckedSpec {
  std::optional<v1::Plan> plan;  // absent while slots are to be found on the nodes
  std::string name;
};

// Everything about a submit that can be refused at once. InvalidArgument: what is wrong and how to
// mend it. Pure.
absl::StatusOr<CheckedSpec> CheckSubmit(const v1::JobSpec& spec);

// The same for a check: a command is not needed.
absl::StatusOr<CheckedSpec> CheckCheck(const v1::JobSpec& spec);

// A grace period of a job or a stop: 0 s to 7 days.
absl::Status CheckGrace(const google::protobuf::Duration& grace);

}  // namespace muster::runtime
