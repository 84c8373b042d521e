#include "worker/daemon/listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "common/log.h"
#include "common/status.h"
#include "common/tcp_table.h"
#include "worker/facts/port.h"

namespace muster::worker {
namespace {

constexpr int kBacklog = 64;

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

absl::StatusOr<UniqueFd> Listener::ListenTcp(const std::string& text) {
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
        flag + "expected `unix`, or IP:PORT like 127.0.0.2:7465 or [::1]:7465");
  }
  if (!IsLoopback(address)) {
    return absl::InvalidArgumentError(
        flag +
        "not a loopback address; without TLS musterd listens only on 127.0.0.0/8 and [::1]. "
        "Other machines reach it over ssh");
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
  return fd;
}

Listener::Listener(Reactor& reactor, UniqueFd socket, Accepted accepted)
    : reactor_(reactor), socket_(std::move(socket)), accepted_(std::move(accepted)) {
  reactor_.Watch(socket_.get(), [this] { Accept(); });
}

Listener::~Listener() {
  reactor_.Unwatch(socket_.get());
}

void Listener::Accept() {
  while (true) {
    UniqueFd fd(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!fd) return;
    const auto uid = PeerUid(fd.get());
    if (!uid || (*uid != getuid() && *uid != 0)) {
      log::Warning("refused a connection of " +
                   (uid ? "uid " + std::to_string(*uid) : std::string("an unknown user")) +
                   ": this musterd serves uid " + std::to_string(getuid()));
      continue;
    }
    const int on = 1;
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // no effect on Unix sockets
    accepted_(std::move(fd));
  }
}

}  // namespace muster::worker
