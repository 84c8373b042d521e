#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "controller/nodes/connection.h"
#include "controller/nodes/remote_process.h"
#include "controller/nodes/stop_signal.h"
#include "controller/nodes/worker_programs.h"

namespace muster::nodes {

struct ReachOptions {
  // From the call to the bridge's marker line. While the worker is pushed, from the last bytes that
  // the host took.
  std::chrono::milliseconds timeout{30'000};
  std::chrono::milliseconds push_limit{20 * 60'000};  // for a push as a whole: 12 KB/s
  std::string name;                                   // the node's name
  std::shared_ptr<WorkerPrograms> programs;           // what is used and pushed
  // What helps against what a carrier said on its stderr before it ended, when another try will
  // fail too; "": another try may do. Null: never.
  std::string_view (*advice)(const std::string& errors) = nullptr;
  // The host has no worker: its push begins. On the calling thread. May be empty.
  std::function<void()> on_push = {};
};

// Makes the process `started`, which runs the words of remote_command.h on a host, the bridge of
// the worker there: sends it the bootstrap script, pushes the worker's programs when the script
// asks for them, and waits for the bridge's marker line. What else comes before that line is
// skipped. The process ends with the connection. The same for every carrier. Any thread.
// FailedPrecondition: another try will not help (login refused, no place for the worker there,
// another version); DeadlineExceeded, Unavailable, Cancelled otherwise. Messages have the process's
// exit status and its last words.
absl::StatusOr<Connection> ReachWorker(StartedProcess started, const ReachOptions& options,
                                       const StopSignal& stop);

}  // namespace muster::nodes
