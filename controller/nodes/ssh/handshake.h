#pragma once

#include <absl/status/statusor.h>

#include "common/unique_fd.h"
#include "controller/nodes/ssh/libssh_handle.h"
#include "controller/nodes/ssh/target.h"

namespace muster::nodes::ssh {

// Version line, key exchange and the check of the host's key over `fd`, a stream to the host's
// sshd. DeadlineExceeded says which of them got no answer; Unavailable: the stream ended, another
// try may do (MaxStartups); FailedPrecondition: the key is not to be trusted, nothing in common.
absl::StatusOr<SessionPtr> Handshake(UniqueFd fd, const Target& target, const Limits& limits);

}  // namespace muster::nodes::ssh
