#include "worker/facts/route.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <strings.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>

#include "common/unique_fd.h"

namespace muster::facts {
namespace {

using Interfaces = std::unique_ptr<ifaddrs, void (*)(ifaddrs*)>;

Interfaces ReadInterfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) list = nullptr;
  return {list, freeifaddrs};
}

SocketAddress FromSockaddr(const sockaddr* address) {
  SocketAddress out;
  out.size = address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  std::memcpy(&out.storage, address, out.size);
  return out;
}

// "eth0:1" is an alias of eth0, which collectives do not know.
std::string DeviceName(const char* label) {
  const std::string name = label;
  return name.substr(0, name.find(':'));
}

}  // namespace

bool SocketAddress::IsLoopback() const {
  if (storage.ss_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr);
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage);
  return (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
}

std::string SocketAddress::Text() const {
  char text[INET6_ADDRSTRLEN] = "";
  const void* raw =
      storage.ss_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr)
          : &reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr;
  inet_ntop(storage.ss_family, raw, text, sizeof text);
  return text;
}

void SocketAddress::SetPort(uint32_t port) {
  const auto value = htons(static_cast<uint16_t>(port));
  if (storage.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port = value;
  } else {
    reinterpret_cast<sockaddr_in*>(&storage)->sin_port = value;
  }
}

std::optional<SocketAddress> ParseAddress(const std::string& text) {
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  v4.sin_family = AF_INET;
  v6.sin6_family = AF_INET6;
  if (inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1)
    return FromSockaddr(reinterpret_cast<const sockaddr*>(&v4));
  const std::string bare =
      text.starts_with('[') && text.ends_with(']') ? text.substr(1, text.size() - 2) : text;
  if (inet_pton(AF_INET6, bare.c_str(), &v6.sin6_addr) == 1)
    return FromSockaddr(reinterpret_cast<const sockaddr*>(&v6));
  return std::nullopt;
}

std::optional<SocketAddress> FindInHosts(const std::string& hosts, const std::string& name) {
  std::istringstream lines(hosts);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string address;
    words >> address;
    for (std::string word; words >> word;) {
      if (strcasecmp(word.c_str(), name.c_str()) == 0) return ParseAddress(address);
    }
  }
  return std::nullopt;
}

std::optional<SocketAddress> ResolveAddress(const std::string& text, const Environment& environment,
                                            std::chrono::steady_clock::time_point deadline) {
  if (const auto number = ParseAddress(text)) return number;
  std::ifstream file("/etc/hosts");
  const std::string hosts{std::istreambuf_iterator<char>(file), {}};
  if (const auto found = FindInHosts(hosts, text)) return found;
  const ToolOutput answer = RunTool({"getent", "ahosts", text}, environment, deadline);
  return ParseAddress(answer.out.substr(0, answer.out.find_first_of(" \t\n")));
}

Route RouteTo(const SocketAddress& target) {
  Route route;
  SocketAddress to = target;
  to.SetPort(9);  // nothing is sent
  const UniqueFd fd(socket(to.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage local{};
  socklen_t size = sizeof local;
  if (!fd || connect(fd.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.size) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&local), &size) != 0) {
    route.error = "no route to " + target.Text() + ": " + std::strerror(errno);
    return route;
  }
  route.address = FromSockaddr(reinterpret_cast<const sockaddr*>(&local)).Text();
  const Interfaces interfaces = ReadInterfaces();
  for (const ifaddrs* it = interfaces.get(); it != nullptr; it = it->ifa_next) {
    if (it->ifa_addr == nullptr || it->ifa_addr->sa_family != local.ss_family) continue;
    if (FromSockaddr(it->ifa_addr).Text() == route.address) {
      route.iface = DeviceName(it->ifa_name);
      return route;
    }
  }
  // Addresses of 127.0.0.0/8 other than the one that is set work too.
  if (FromSockaddr(reinterpret_cast<const sockaddr*>(&local)).IsLoopback()) route.iface = "lo";
  if (route.iface.empty()) route.error = "no interface has the address " + route.address;
  return route;
}

std::string InterfaceError(const std::string& name) {
  const Interfaces interfaces = ReadInterfaces();
  bool exists = false;
  bool up = false;
  std::string names;
  for (const ifaddrs* it = interfaces.get(); it != nullptr; it = it->ifa_next) {
    const bool has_address = it->ifa_addr != nullptr && (it->ifa_addr->sa_family == AF_INET ||
                                                         it->ifa_addr->sa_family == AF_INET6);
    const std::string device = DeviceName(it->ifa_name);
    if (has_address && (", " + names + ",").find(", " + device + ",") == std::string::npos)
      names += (names.empty() ? "" : ", ") + device;
    if (device != name) continue;
    exists = true;
    up = (it->ifa_flags & IFF_UP) != 0;
    if (up && has_address) return "";
  }
  const std::string rest = " (interfaces with an address: " + names + ")";
  if (!exists) return "there is no interface " + name + rest;
  return up ? "interface " + name + " has no address" + rest : "interface " + name + " is down";
}

}  // namespace muster::facts
