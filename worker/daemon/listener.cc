#include "worker/daemon/listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "common/status.h"
#include "common/tcp_table.h"
#include "worker/facts/port.h"

namespace muster::worker {
namespace {

constexpr int kBacklog = 256;

struct HostPort {
  std::string host;
  uint32_t port;
};

std::optional<HostPort> Split(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  std::string host = text.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  char* end = nullptr;
  const unsigned long port = std::strtoul(text.c_str() + colon + 1, &end, 10);
  if (*end != '\0' || end == text.c_str() + colon + 1 || port > 65535) return std::nullopt;
  return HostPort{host, static_cast<uint32_t>(port)};
}

bool IsLoopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, &address, sizeof in);
    return (ntohl(in.sin_addr.s_addr) >> 24) == 127;
  }
  sockaddr_in6 in;
  std::memcpy(&in, &address, sizeof in);
  return IN6_IS_ADDR_LOOPBACK(&in.sin6_addr);
}

// The user on the other side of a connected socket; nothing if it cannot be found out.
std::optional<uint32_t> PeerUid(int fd) {
  sockaddr_storage local{};
  sockaddr_storage remote{};
  socklen_t size = sizeof local;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&local), &size) != 0) return std::nullopt;
  if (local.ss_family == AF_UNIX) {
    ucred peer{};
    socklen_t peer_size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) != 0) return std::nullopt;
    return peer.uid;
  }
  size = sizeof remote;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&remote), &size) != 0) return std::nullopt;
  const auto here = ToTcpEnd(local);
  const auto there = ToTcpEnd(remote);
  if (!here || !there) return std::nullopt;
  // The other end of a loopback connection is in the same table, seen from its side.
  return OwnerOfConnection(ReadTcpTable(), *there, *here);
}

}  // namespace

absl::StatusOr<TcpListener> ListenTcp(const std::string& text) {
  const std::string flag = "--listen " + text + ": ";
  const auto parts = Split(text);
  sockaddr_storage address{};
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  socklen_t size = 0;
  if (parts && inet_pton(AF_INET, parts->host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(static_cast<uint16_t>(parts->port));
    std::memcpy(&address, &v4, size = sizeof v4);
  } else if (parts && inet_pton(AF_INET6, parts->host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(static_cast<uint16_t>(parts->port));
    std::memcpy(&address, &v6, size = sizeof v6);
  } else {
    return absl::InvalidArgumentError(
        flag + "expected `unix`, or IP:PORT like 10.0.0.5:7465, 0.0.0.0:7465 or [::1]:7465");
  }
  UniqueFd fd(socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return PosixError(flag + "socket");
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      listen(fd.get(), kBacklog) != 0) {
    if (errno != EADDRINUSE) return PosixError(flag + "bind");
    return absl::AlreadyExistsError(
        flag + facts::DescribePortInUse(parts->host, parts->port, facts::ProcReader::Real()) +
        ": choose another port, or end that process");
  }
  return TcpListener{std::move(fd), !IsLoopback(address)};
}

absl::Status CheckPeerUid(int fd) {
  const auto uid = PeerUid(fd);
  if (uid && (*uid == getuid() || *uid == 0)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "it is of " + (uid ? "uid " + std::to_string(*uid) : std::string("an unknown user")) +
      "; this musterd serves uid " + std::to_string(getuid()));
}

std::string PeerAddress(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return "an unknown address";
  }
  if (address.ss_family == AF_UNIX) return "a Unix socket";
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, &address, sizeof in);
    inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
    return std::string(text) + ":" + std::to_string(ntohs(in.sin_port));
  }
  sockaddr_in6 in;
  std::memcpy(&in, &address, sizeof in);
  inet_ntop(AF_INET6, &in.sin6_addr, text, sizeof text);
  return "[" + std::string(text) + "]:" + std::to_string(ntohs(in.sin6_port));
}

}  // namespace muster::worker
