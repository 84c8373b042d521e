#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <string>

#include "controller/nodes/stop_signal.h"

namespace muster::nodes {

// The first address of a host, in digits; a numeric one is returned as it is. Asking a name server
// that does not answer takes as long as it takes: it is waited for on a thread of its own, no
// longer than `timeout`. FailedPrecondition: there is no such name; DeadlineExceeded, Unavailable
// (the name server's fault), Cancelled when `stop` is set. Any thread.
absl::StatusOr<std::string> ResolveAddress(const std::string& host,
                                           std::chrono::milliseconds timeout,
                                           const StopSignal& stop);

}  // namespace muster::nodes
