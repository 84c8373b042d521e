#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "common/unique_fd.h"
#include "controller/nodes/stop_signal.h"

namespace muster::nodes {

// A TCP connection to a worker at a numeric address or a name (tcp.h). DeadlineExceeded after
// `timeout`, Cancelled when `stop` is set, FailedPrecondition when there is no such name; else what
// its addresses said, and what helps. Any thread.
absl::StatusOr<UniqueFd> DialTcp(const std::string& address, uint32_t port,
                                 std::chrono::milliseconds timeout, const StopSignal& stop);

// The same to a loopback address, for plaintext. Unavailable when another user than ours or root
// listens there.
absl::StatusOr<UniqueFd> DialOwnTcp(const std::string& address, uint32_t port,
                                    std::chrono::milliseconds timeout, const StopSignal& stop);

}  // namespace muster::nodes
