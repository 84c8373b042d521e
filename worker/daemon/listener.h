#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>

#include "common/unique_fd.h"

// The addresses that musterd listens on, and who may connect there. Any thread.

namespace muster::worker {

struct TcpListener {
  UniqueFd socket;
  // Not on the loopback: only mutual TLS. Plaintext is for the Unix socket and the loopback, where
  // the kernel says who is on the other side.
  bool tls = false;
};

// Listens on "IP:PORT" or "[IP]:PORT". The error names address and holder, or why the address will
// not do.
absl::StatusOr<TcpListener> ListenTcp(const std::string& address);

// Is the other side of this plaintext connection of this machine and of this user (or root)?
// PermissionDenied says who it is instead.
absl::Status CheckPeerUid(int fd);

// "10.0.0.7:41234": the other side of a connected socket; "a Unix socket" or "an unknown address"
// where it has none.
std::string PeerAddress(int fd);

}  // namespace muster::worker
