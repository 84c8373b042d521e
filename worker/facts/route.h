#pragma once

#include <sys/socket.h>

#include <chrono>
#include <optional>
#include <string>

#include "worker/facts/run_tool.h"

namespace muster::facts {

// A numeric address with a port.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  bool IsLoopback() const;
  std::string Text() const;  // "10.0.0.2", "fd00::2"
  void SetPort(uint32_t port);
};

std::optional<SocketAddress> ParseAddress(const std::string& text);

// A number as it is; a name as this machine resolves it: /etc/hosts, then `getent ahosts` (a static
// program has no name service). Blocks until the deadline at most.
std::optional<SocketAddress> ResolveAddress(const std::string& text, const Environment& environment,
                                            std::chrono::steady_clock::time_point deadline);

// First address of `name` in the text of an /etc/hosts; names are compared without case.
std::optional<SocketAddress> FindInHosts(const std::string& hosts, const std::string& name);

struct Route {
  std::string iface;    // "eth0"
  std::string address;  // ours on it
  std::string error;    // why there is none
};
// The interface by which packets to `target` leave.
Route RouteTo(const SocketAddress& target);

// Why ranks can't use the interface `name`; "" if it is up and has an address.
std::string InterfaceError(const std::string& name);

}  // namespace muster::facts
