#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "controller/nodes/connection.h"
#include "controller/nodes/reach_worker.h"
#include "controller/nodes/stop_signal.h"

namespace muster::nodes {

// Starts a program (`words`) that runs `musterd bridge` on a host, and reaches the worker through
// it; fails as ReachWorker does, and with FailedPrecondition when the program can't be started.
// `options.advice` is ssh's. Any thread.
absl::StatusOr<Connection> DialCommand(const std::vector<std::string>& words, ReachOptions options,
                                       const StopSignal& stop);

// What helps against what ssh said on stderr; "": nothing that we know.
std::string_view SshAdvice(const std::string& errors);

}  // namespace muster::nodes
