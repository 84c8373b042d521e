#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "common/unique_fd.h"
#include "controller/nodes/ssh/config.h"
#include "controller/nodes/ssh/limits.h"

namespace muster::nodes::ssh {

// A TCP connection to a name or a numeric address (fe80::1%eth0 too); a name's addresses are tried
// one after the other. Non-blocking, close-on-exec, without Nagle's delay, with keepalive.
// FailedPrecondition: there is no such name; otherwise what each address said.
absl::StatusOr<UniqueFd> ConnectTcp(const std::string& host, uint16_t port, AddressFamily family,
                                    const Limits& limits);

}  // namespace muster::nodes::ssh
