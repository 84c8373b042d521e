#pragma once

#include <functional>
#include <optional>
#include <string>

// Which local address a rank's Gloo connections bind to, so that every other rank can reach it.

namespace muster::parallel {

// One end of a route: numeric addresses, without port or scope.
struct Route {
  std::string local;   // this machine's address on the way
  std::string remote;  // the other end's address
};

// The route to `host`:`port` as the kernel would choose it (a UDP socket is connected, nothing is
// sent). Nothing when the name has no address or none can be reached.
std::optional<Route> RouteTo(const std::string& host, int port);

bool IsLoopback(const std::string& numeric_address);

// The address to bind: `mine` is this rank's route to the master, `last` the last rank's. A rank on
// the master's own machine may see it by a loopback address (Debian maps a host's own name to
// 127.0.1.1), which ranks elsewhere can't reach; it then takes the master's address as the last
// rank sees it.
std::string ChooseAddress(const Route& mine, const Route& last);

}  // namespace muster::parallel
