#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "muster/v1/control.grpc.pb.h"

namespace muster::api {

// A client of the controller that serves `state_dir`. NotFound or Unavailable: no controller runs
// there (the caller may start one and try again). The stub is usable from any thread; it does not
// reconnect: connect anew after UNAVAILABLE.
absl::StatusOr<std::unique_ptr<v1::Control::Stub>> Connect(const std::string& state_dir);

}  // namespace muster::api
