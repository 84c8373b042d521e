#include "controller/nodes/tcp.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/status.h"
#include "controller/nodes/resolve.h"

namespace muster::nodes {
namespace {

using std::chrono::milliseconds;

// An address gets at least so long, also when a name has many.
constexpr milliseconds kLeastForAddress{1'000};

absl::Status SetOptions(int fd) {
  const int on = 1;
  if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
    return PosixError("TCP_NODELAY");
  }
  if (setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on) != 0) {
    return PosixError("SO_KEEPALIVE");
  }
  return absl::OkStatus();
}

absl::Status ConnectError(int error) {
  return absl::UnavailableError(error == ECONNREFUSED ? "connection refused" : strerror(error));
}

absl::StatusOr<UniqueFd> ConnectTo(const SocketAddress& address, const Limits& limits) {
  UniqueFd fd(
      socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!fd) return PosixError("socket");
  MUSTER_RETURN_IF_ERROR(SetOptions(fd.get()));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) == 0) {
    return fd;
  }
  if (errno != EINPROGRESS) return ConnectError(errno);
  while (true) {
    pollfd now{.fd = fd.get(), .events = POLLOUT, .revents = 0};
    if (poll(&now, 1, 0) == 1) break;
    MUSTER_RETURN_IF_ERROR(WaitFd(fd.get(), POLLOUT, limits));
  }
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
    return PosixError("getsockopt");
  }
  if (error != 0) return ConnectError(error);
  return fd;
}

}  // namespace

absl::StatusOr<UniqueFd> ConnectTcp(const std::string& host, uint16_t port, int family,
                                    const Limits& limits) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<SocketAddress> addresses,
                          ResolveName(host, port, family, limits));
  absl::Status failure = absl::UnavailableError("name " + host + " has no address");
  std::string reasons;
  for (size_t i = 0; i < addresses.size(); ++i) {
    const auto share = limits.Left() / static_cast<int64_t>(addresses.size() - i);
    auto fd = ConnectTo(addresses[i], limits.AtMost(std::max(share, kLeastForAddress)));
    if (fd.ok() || absl::IsCancelled(fd.status())) return fd;
    reasons += (reasons.empty() ? "" : "; ") + addresses[i].Text() + " port " +
               std::to_string(port) + ": " + std::string(fd.status().message());
    failure = absl::Status(fd.status().code(), reasons);
  }
  return failure;
}

}  // namespace muster::nodes
