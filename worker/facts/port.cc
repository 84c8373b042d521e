#include "worker/facts/port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <random>

#include "worker/facts/port_holder.h"

namespace muster::facts {
namespace {

// The kernel's default range for outgoing connections begins at 32768.
constexpr uint32_t kFirstPort = 20000;
constexpr uint32_t kLastPort = 32000;
constexpr int kTries = 100;

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

// Every address when `text` is not numeric.
Address Parse(const std::string& text, uint32_t port) {
  Address out;
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  const auto network_port = htons(static_cast<uint16_t>(port));
  if (inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = network_port;
    out.size = sizeof v6;
    std::memcpy(&out.storage, &v6, sizeof v6);
    return out;
  }
  if (inet_pton(AF_INET, text.c_str(), &v4.sin_addr) != 1) v4.sin_addr.s_addr = INADDR_ANY;
  v4.sin_family = AF_INET;
  v4.sin_port = network_port;
  out.size = sizeof v4;
  std::memcpy(&out.storage, &v4, sizeof v4);
  return out;
}

// A listening socket, or errno.
int Listen(const Address& address, UniqueFd& out) {
  UniqueFd fd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return errno;
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0 ||
      listen(fd.get(), 1) != 0) {
    return errno;
  }
  out = std::move(fd);
  return 0;
}

const char* EveryAddress(const std::string& address) {
  return address.find(':') == std::string::npos ? "0.0.0.0" : "::";
}

std::string WrongAddress(const std::string& address, int error) {
  return error == EADDRNOTAVAIL ? address + " is not an address of this node"
                                : "listen on " + address + ": " + std::strerror(error);
}

HeldPort HoldAnyPort(const std::string& address) {
  HeldPort held;
  // First whether the address is this node's at all.
  UniqueFd probe;
  if (const int error = Listen(Parse(address, 0), probe); error != 0) {
    held.error = WrongAddress(address, error);
    return held;
  }
  std::random_device random;
  std::uniform_int_distribution<uint32_t> ports(kFirstPort, kLastPort);
  int error = 0;
  for (int i = 0; i < kTries; ++i) {
    const uint32_t port = ports(random);
    error = Listen(Parse(EveryAddress(address), port), held.socket);
    if (error == 0) {
      held.port = port;
      return held;
    }
    if (error != EADDRINUSE) break;
  }
  held.error = "no free port between " + std::to_string(kFirstPort) + " and " +
               std::to_string(kLastPort) + ": " + std::strerror(error);
  return held;
}

std::string Show(const std::string& address, uint32_t port) {
  const bool v6 = address.find(':') != std::string::npos;
  return (v6 ? "[" + address + "]" : address.empty() ? "*" : address) + ":" + std::to_string(port);
}

HeldPort HoldPortOf(const std::string& address, uint32_t first, uint32_t last,
                    const ProcReader& proc) {
  HeldPort held;
  UniqueFd probe;
  if (const int error = Listen(Parse(address, 0), probe); error != 0) {
    held.error = WrongAddress(address, error);
    return held;
  }
  for (uint32_t port = first; port <= last; ++port) {
    const int error = Listen(Parse(EveryAddress(address), port), held.socket);
    if (error == 0) {
      held.port = port;
      return held;
    }
    if (error != EADDRINUSE) {
      held.error = "listen on port " + std::to_string(port) + ": " + std::strerror(error);
      return held;
    }
  }
  held.error = DescribePortInUse("", first, proc);
  if (last > first) {
    held.error = "no port of " + std::to_string(first) + " to " + std::to_string(last) +
                 " is free: " + held.error + " ...";
  }
  return held;
}

}  // namespace

HeldPort HoldPort(const std::string& address, const PortWish& wish, const ProcReader& proc) {
  const uint32_t port = wish.port;
  if (port == 0 && wish.first != 0) return HoldPortOf(address, wish.first, wish.last, proc);
  if (port == 0) return HoldAnyPort(address);
  HeldPort held;
  if (port > 65535) {
    held.error = std::to_string(port) + " is not a TCP port (1 to 65535)";
    return held;
  }
  const int error = Listen(Parse(address, port), held.socket);
  if (error == 0) {
    held.port = port;
  } else if (error == EADDRINUSE) {
    held.error = DescribePortInUse(address, port, proc);
  } else if (error == EADDRNOTAVAIL) {
    held.error = address + " is not an address of this node";
  } else {
    held.error = "listen on " + Show(address, port) + ": " + std::strerror(error);
  }
  return held;
}

std::optional<TcpEntry> FindListener(const std::string& address, uint32_t port) {
  const auto wanted = ToTcpEnd(Parse(address, port).storage);
  for (const TcpEntry& entry : ReadTcpTable()) {
    const bool there =
        entry.local.IsAny() || wanted->IsAny() || entry.local.address == wanted->address;
    if (entry.listening && entry.local.port == port && there) return entry;
  }
  return std::nullopt;
}

std::string DescribePortInUse(const std::string& address, uint32_t port, const ProcReader& proc) {
  const auto entry = FindListener(address, port);
  return Show(address, port) + " is in use" + (entry ? " by " + DescribeHolder(*entry, proc) : "");
}

}  // namespace muster::facts
