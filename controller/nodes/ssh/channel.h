#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "controller/nodes/ssh/libssh_handle.h"

namespace muster::nodes::ssh {

// Runs a command, one line for the user's login shell there. FailedPrecondition: the host does not
// let this user run commands.
absl::StatusOr<ChannelPtr> OpenCommand(ssh_session session, const std::string& line,
                                       const Limits& limits);

// A stream from that host to a port of another, as `ssh -W` makes it. FailedPrecondition: the host
// forbids it; Unavailable: the other can't be reached from there.
absl::StatusOr<ChannelPtr> OpenForward(ssh_session session, const std::string& host, uint16_t port,
                                       const Limits& limits);

}  // namespace muster::nodes::ssh
