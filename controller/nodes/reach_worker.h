#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <string>
#include <string_view>

#include "controller/nodes/connection.h"
#include "controller/nodes/remote_process.h"
#include "controller/nodes/stop_signal.h"

namespace muster::nodes {

struct ReachOptions {
  std::chrono::milliseconds timeout{30'000};  // from the call to the bridge's marker line
  std::string musterd;                        // where the worker is looked for, for messages
  // What helps against what a carrier said on its stderr before it ended, when another try will
  // fail too; "": another try may do. Null: never.
  std::string_view (*advice)(const std::string& errors) = nullptr;
};

// Waits until the bridge on the other side of `started` (which runs the words of remote_command.h)
// has said its marker line; what comes before it is skipped. The process ends with the connection.
// The same for every carrier. Any thread.
// FailedPrecondition: another try will not help (login refused, no musterd there, another version);
// DeadlineExceeded, Unavailable, Cancelled otherwise. Messages have the process's exit status and
// its last words.
absl::StatusOr<Connection> ReachWorker(StartedProcess started, const ReachOptions& options,
                                       const StopSignal& stop);

}  // namespace muster::nodes
