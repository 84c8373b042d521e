#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <functional>
#include <string>

#include "common/unique_fd.h"
#include "worker/daemon/reactor.h"

namespace muster::worker {

// A listening socket with our own accept loop, since gRPC tells nothing about a peer. Only
// connections of this user (or root) get through: plaintext is for the Unix socket and the
// loopback, where the kernel says who is on the other side. Reactor thread only.
class Listener {
 public:
  // Takes over a connected, non-blocking descriptor.
  using Accepted = std::function<void(UniqueFd)>;

  // "IP:PORT" or "[IP]:PORT" on the loopback. The error names address and holder, or why the
  // address will not do.
  static absl::StatusOr<UniqueFd> ListenTcp(const std::string& address);

  Listener(Reactor& reactor, UniqueFd socket, Accepted accepted);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

 private:
  void Accept();

  Reactor& reactor_;
  UniqueFd socket_;
  const Accepted accepted_;
};

}  // namespace muster::worker
