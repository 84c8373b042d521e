#include "worker/facts/network.h"

#include <netinet/in.h>

#include "worker/facts/mesh.h"
#include "worker/facts/route.h"

namespace muster::facts {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;

void FindRoute(const v1::NetworkProbe& probe, const Environment& environment, TimePoint deadline,
               v1::NetworkResult& result) {
  if (!probe.iface().empty()) {
    result.set_iface(probe.iface());
    result.set_route_error(InterfaceError(probe.iface()));
    return;
  }
  if (probe.route_to().empty()) return;
  const auto target = ResolveAddress(probe.route_to(), environment, deadline);
  if (!target) {
    result.set_route_error("can't resolve '" + probe.route_to() + "'");
    return;
  }
  const Route route = RouteTo(*target);
  result.set_iface(route.iface);
  result.set_route_error(route.error);
}

// A node's own name often means 127.0.1.1 (Debian's /etc/hosts), where nobody else gets to: then
// all of its addresses count.
SocketAddress ListenAddress(const std::string& text, const SocketAddress& resolved, bool loopback) {
  if (ParseAddress(text) || loopback || !resolved.IsLoopback()) return resolved;
  return *ParseAddress(resolved.storage.ss_family == AF_INET6 ? "::" : "0.0.0.0");
}

}  // namespace

v1::NetworkResult AnswerNetwork(const v1::NetworkProbe& probe, const Environment& environment,
                                const ProcReader& proc, TimePoint deadline) {
  v1::NetworkResult result;
  FindRoute(probe, environment, deadline, result);
  MeshTask task;
  task.token = probe.token();
  task.self = probe.self();
  task.ports.assign(probe.ports().begin(), probe.ports().end());
  task.expect.assign(probe.expect().begin(), probe.expect().end());
  for (const v1::NetworkPeer& peer : probe.connect()) {
    const auto address = ResolveAddress(peer.address(), environment, deadline);
    if (address) {
      task.connect.push_back({peer.node(), *address});
      continue;
    }
    v1::PeerResult& failed = *result.add_connected();
    failed.set_node(peer.node());
    failed.set_error("can't resolve '" + peer.address() + "'");
  }
  const auto listen = ResolveAddress(probe.listen_address(), environment, deadline);
  if (!listen) {
    result.set_listen_error("can't resolve its own data address '" + probe.listen_address() + "'");
    task.expect.clear();
    task.ports.clear();
  } else {
    task.listen = ListenAddress(probe.listen_address(), *listen, result.iface() == "lo");
    result.set_address(task.listen.Text());
  }
  RunMesh(task, proc, deadline, result);
  return result;
}

}  // namespace muster::facts
