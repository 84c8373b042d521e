#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "common/unique_fd.h"
#include "controller/nodes/limits.h"

namespace muster::nodes {

// A TCP connection to a name or a numeric address (fe80::1%eth0 too); a name's addresses are tried
// one after the other, each with its share of the time. `family`: AF_UNSPEC, AF_INET or AF_INET6.
// Non-blocking, close-on-exec, without Nagle's delay, with keepalive. FailedPrecondition: there is
// no such name, and the caller knows the fix; otherwise what each address said: "10.0.0.7 port 22:
// connection refused". Any thread.
absl::StatusOr<UniqueFd> ConnectTcp(const std::string& host, uint16_t port, int family,
                                    const Limits& limits);

}  // namespace muster::nodes
