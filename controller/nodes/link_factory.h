#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "controller/nodes/connection.h"
#include "controller/nodes/node_link.h"
#include "controller/nodes/stop_signal.h"

namespace muster::nodes {

struct LinkOptions {
  std::string controller_id;  // ControllerHello.controller_id
  std::string musterd;        // worker program; empty: `musterd` beside this program. Behind ssh
                              // it is looked for at the same path, then in PATH
  std::string tls_dir;        // this controller's certificates for direct links (docs/security.md)
  std::string state_parent;   // folder of the nodes' state folders; empty: $MUSTER_STATE or
                              // /var/tmp/muster-<uid>
  std::chrono::milliseconds connect_timeout{
      10'000};  // for the connection and the worker's hello together
  std::chrono::milliseconds command_timeout{
      30'000};                  // from the start of ssh or another program to the worker's bridge
  int parallel_commands = 128;  // so many such programs connect at a time
  std::chrono::milliseconds spawn_timeout{
      10'000};  // from the start of a local musterd to its socket
  std::chrono::milliseconds backoff_initial{100};
  std::chrono::milliseconds backoff_maximum{5'000};
  std::chrono::milliseconds refused_pause{
      30'000};  // before a worker of another protocol version is tried again
  size_t max_queued_bytes =
      8 << 20;  // a node that takes less than this is lost and gets its wish anew
};

// Links by transport: local (a musterd of this machine over its Unix socket, started when none
// runs), direct (gRPC to a musterd that listens, by mutual TLS except on loopback addresses), ssh
// (libssh, in this process), openssh and command (a program's stdin and stdout, with `musterd
// bridge` on the other side). Immutable; any thread. Outlives its links.
std::unique_ptr<LinkFactory> MakeLinkFactory(const LinkOptions& options);

// How such a link would reach the host, for one connection. InvalidArgument as LinkFactory::Make.
// The dialer may be called from any thread.
using Dialer = std::function<absl::StatusOr<Connection>(const StopSignal& stop)>;
absl::StatusOr<Dialer> MakeDialer(const LinkOptions& options, const v1::Host& host,
                                  const std::string& default_transport);

}  // namespace muster::nodes
