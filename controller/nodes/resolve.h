#pragma once

#include <absl/status/statusor.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "controller/nodes/limits.h"

namespace muster::nodes {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  std::string Text() const;  // the address without its port
};

// The addresses of a name, or of a numeric address itself (fe80::1%eth0 too). `family`: AF_INET,
// AF_INET6, or AF_UNSPEC for both. A name server that does not answer holds nobody up for longer
// than the limits, and however often it is asked for a name, one thread waits for it.
// FailedPrecondition: there is no such name; the caller knows the fix. Any thread.
absl::StatusOr<std::vector<SocketAddress>> ResolveName(const std::string& host, uint16_t port,
                                                       int family, const Limits& limits);

}  // namespace muster::nodes
