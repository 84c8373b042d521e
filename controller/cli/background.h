#pragma once

#include <absl/status/status.h>

#include <string>

namespace muster::cli {

// Starts a controller for `state_dir` (absolute) as a process of its own: own session, working
// folder /, standard input empty, output to `<state dir>/controller.log`, the environment as it is
// here. Returns when it answers. Two callers at once start one: a lock in the state folder decides,
// and the second finds the first one's. Errors carry the last lines of the log. Any thread.
absl::Status StartController(const std::string& state_dir);

}  // namespace muster::cli
