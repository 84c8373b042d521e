#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <string>

#include "controller/nodes/remote_process.h"
#include "controller/nodes/ssh/bastions.h"
#include "controller/nodes/ssh/target.h"
#include "controller/nodes/stop_signal.h"

namespace muster::nodes::ssh {

struct SshDial {
  ConfigRequest request;                      // the host, and what the configuration is to say
  std::string command;                        // for the login shell there
  std::chrono::milliseconds timeout{30'000};  // for all of it, but for waits at a bastion
};

// Logs in on a host, over the hops of its ProxyJump or its ProxyCommand, and starts a command
// there. A host that throws us out before the login (MaxStartups) is tried again until the time is
// up. Any thread; returns soon after `stop` is set.
// FailedPrecondition, InvalidArgument: another try will not help; DeadlineExceeded, Unavailable,
// Cancelled otherwise. The message names the step, and the hop if it is not the host itself.
absl::StatusOr<StartedProcess> DialSsh(const SshDial& dial, Bastions& bastions,
                                       const StopSignal& stop);

}  // namespace muster::nodes::ssh
