#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <string>
#include <vector>

#include "controller/nodes/connection.h"
#include "controller/nodes/stop_signal.h"

namespace muster::nodes {

struct CommandDial {
  std::vector<std::string> words;             // the program that runs `musterd bridge` on the host
  std::chrono::milliseconds timeout{30'000};  // from its start to the bridge's marker line
  std::string musterd;                        // where the worker is looked for, for messages
};

// Starts the program and waits until the bridge on its other side has said its marker line; what
// comes before it is skipped. The program ends with the connection. Any thread.
// FailedPrecondition: another try will not help (program missing, login refused, no musterd there,
// another version); DeadlineExceeded, Unavailable, Cancelled otherwise. Messages have the program's
// exit status and its last words.
absl::StatusOr<Connection> DialCommand(const CommandDial& dial, const StopSignal& stop);

}  // namespace muster::nodes
