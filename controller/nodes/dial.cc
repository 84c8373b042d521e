#include "controller/nodes/dial.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/tcp_table.h"

namespace muster::nodes {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

absl::StatusOr<Address> ParseAddress(const std::string& address, uint32_t port) {
  Address out;
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  const auto network_port = htons(static_cast<uint16_t>(port));
  if (inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = network_port;
    out.size = sizeof v4;
    std::memcpy(&out.storage, &v4, sizeof v4);
    return out;
  }
  if (inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = network_port;
    out.size = sizeof v6;
    std::memcpy(&out.storage, &v6, sizeof v6);
    return out;
  }
  return absl::InvalidArgumentError("'" + address + "' is not a numeric address");
}

absl::Status ConnectError(int error) {
  return absl::UnavailableError(error == ECONNREFUSED ? "connection refused" : strerror(error));
}

absl::Status Hint(const absl::Status& why, const std::string& address, uint32_t port) {
  if (!absl::IsUnavailable(why)) return why;
  const bool v6 = address.find(':') != std::string::npos;
  return absl::UnavailableError(std::string(why.message()) +
                                ": is musterd running there? start it with: musterd --listen " +
                                (v6 ? "[" + address + "]" : address) + ":" + std::to_string(port));
}

absl::Status WaitConnected(int fd, std::chrono::milliseconds timeout, const StopSignal& stop) {
  pollfd fds[2] = {{.fd = fd, .events = POLLOUT, .revents = 0},
                   {.fd = stop.fd(), .events = POLLIN, .revents = 0}};
  const int ready = poll(fds, 2, static_cast<int>(timeout.count()));
  if (ready < 0) return PosixError("poll");
  if (stop.is_set()) return absl::CancelledError("closed");
  if (ready == 0) {
    return absl::DeadlineExceededError("no answer within " + std::to_string(timeout.count()) +
                                       " ms");
  }
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return PosixError("getsockopt");
  return error == 0 ? absl::OkStatus() : ConnectError(error);
}

// Another user of this machine could listen where our worker should: it would get the jobs and
// their secrets. Only loopback addresses come here, so both ends are in this machine's table.
absl::Status CheckPeer(int fd) {
  sockaddr_storage local{};
  sockaddr_storage remote{};
  socklen_t size = sizeof local;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&local), &size) != 0) {
    return PosixError("getsockname");
  }
  size = sizeof remote;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&remote), &size) != 0) {
    return absl::UnavailableError("the listener is gone");
  }
  const std::optional<TcpEnd> here = ToTcpEnd(local);
  const std::optional<TcpEnd> there = ToTcpEnd(remote);
  if (!here || !there) return absl::InternalError("not an IP connection");
  const std::vector<TcpEntry> table = ReadTcpTable();
  // The peer's end has an owner once it has been accepted; until then the listener's counts.
  std::optional<uint32_t> owner = OwnerOfConnection(table, *there, *here);
  if (!owner) owner = OwnerOfListener(table, *there);
  if (owner && (*owner == geteuid() || *owner == 0)) return absl::OkStatus();
  return absl::UnavailableError(owner ? "uid " + std::to_string(*owner) +
                                            " listens there, not this user or root"
                                      : "the listener is gone");
}

}  // namespace

absl::StatusOr<UniqueFd> DialTcp(const std::string& address, uint32_t port,
                                 std::chrono::milliseconds timeout, const StopSignal& stop) {
  MUSTER_ASSIGN_OR_RETURN(const Address target, ParseAddress(address, port));
  UniqueFd fd(
      socket(target.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!fd) return PosixError("socket");
  const int on = 1;
  if (setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
    return PosixError("TCP_NODELAY");
  }
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&target.storage), target.size) != 0) {
    const absl::Status connected =
        errno == EINPROGRESS ? WaitConnected(fd.get(), timeout, stop) : ConnectError(errno);
    if (!connected.ok()) return Hint(connected, address, port);
  }
  return fd;
}

absl::StatusOr<UniqueFd> DialOwnTcp(const std::string& address, uint32_t port,
                                    std::chrono::milliseconds timeout, const StopSignal& stop) {
  MUSTER_ASSIGN_OR_RETURN(UniqueFd fd, DialTcp(address, port, timeout, stop));
  MUSTER_RETURN_IF_ERROR(CheckPeer(fd.get()));
  return fd;
}

}  // namespace muster::nodes
