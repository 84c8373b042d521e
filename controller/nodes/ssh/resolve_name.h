#pragma once

#include <absl/status/statusor.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "controller/nodes/ssh/config.h"
#include "controller/nodes/ssh/limits.h"

namespace muster::nodes::ssh {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  std::string Text() const;  // the address without its port
};

// The addresses of a name, or of a numeric address itself. A name server that does not answer holds
// nobody up for longer than the limits. FailedPrecondition: there is no such name.
absl::StatusOr<std::vector<SocketAddress>> ResolveName(const std::string& host, uint16_t port,
                                                       AddressFamily family, const Limits& limits);

}  // namespace muster::nodes::ssh
