#pragma once

#include <absl/status/status.h>

#include "controller/nodes/ssh/libssh_handle.h"
#include "controller/nodes/ssh/target.h"

namespace muster::nodes::ssh {

// Logs in on a session that has been through its handshake, by keys of files and agent; nobody is
// ever asked for a password. FailedPrecondition: refused, with all that was tried, what the host
// would take, and the fix; DeadlineExceeded, Unavailable, Cancelled.
absl::Status Login(ssh_session session, const Target& target, const Limits& limits);

}  // namespace muster::nodes::ssh
