#include "trainer/parallel/gloo_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <memory>

#include "common/unique_fd.h"

namespace muster::parallel {
namespace {

std::string Numeric(const sockaddr_storage& address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  const int error = getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, text.data(),
                                text.size(), nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? std::string(text.data()) : std::string();
}

std::optional<Route> RouteTo(const addrinfo& target) {
  const UniqueFd fd(socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd || connect(fd.get(), target.ai_addr, target.ai_addrlen) != 0) return std::nullopt;
  sockaddr_storage local{};
  socklen_t local_length = sizeof local;
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&local), &local_length) != 0) {
    return std::nullopt;
  }
  sockaddr_storage remote{};
  socklen_t remote_length = sizeof remote;
  if (getpeername(fd.get(), reinterpret_cast<sockaddr*>(&remote), &remote_length) != 0) {
    return std::nullopt;
  }
  return Route{Numeric(local, local_length), Numeric(remote, remote_length)};
}

}  // namespace

std::optional<Route> RouteTo(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return std::nullopt;
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  for (const addrinfo* target = found; target != nullptr; target = target->ai_next) {
    if (auto route = RouteTo(*target)) return route;
  }
  return std::nullopt;
}

bool IsLoopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address.starts_with("::ffff:127.");
}

std::string ChooseAddress(const Route& mine, const Route& last) {
  return IsLoopback(mine.local) && !IsLoopback(last.remote) ? last.remote : mine.local;
}

}  // namespace muster::parallel
