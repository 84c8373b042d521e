#pragma once

#include <absl/status/status.h>

#include <string>

namespace muster::cli {

// `muster serve`: the controller of `state_dir`, in this process, until SIGINT or SIGTERM comes or
// somebody asks it to end. Jobs run on after it. Puts its parts together and takes them apart; main
// thread.
absl::Status RunController(const std::string& state_dir);

}  // namespace muster::cli
