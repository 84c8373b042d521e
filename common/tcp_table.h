#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// Who owns a TCP socket of this network namespace, out of /proc/net/tcp and tcp6.

namespace muster {

// An IP address and port; IPv4-mapped IPv6 addresses are kept as IPv4.
struct TcpEnd {
  std::string address;  // raw bytes, network order: 4 or 16
  uint16_t port = 0;

  bool IsAny() const { return address.find_first_not_of('\0') == std::string::npos; }
  friend bool operator==(const TcpEnd&, const TcpEnd&) = default;
};

struct TcpEntry {
  TcpEnd local;
  TcpEnd remote;
  bool listening = false;
  uint32_t uid = 0;
  uint64_t inode = 0;
};

// Parses the text of /proc/net/tcp or tcp6; lines of another shape are skipped.
std::vector<TcpEntry> ParseTcpTable(const std::string& text);

// Both tables of this namespace.
std::vector<TcpEntry> ReadTcpTable();

std::optional<TcpEnd> ToTcpEnd(const sockaddr_storage& address);

// The user that owns the socket whose local end is `local` and whose remote end is `remote`;
// nothing if there is none, or no process holds it any more.
std::optional<uint32_t> OwnerOfConnection(const std::vector<TcpEntry>& table, const TcpEnd& local,
                                          const TcpEnd& remote);

// The user that listens on `end`, on that address or on all of them; nothing if nobody does.
std::optional<uint32_t> OwnerOfListener(const std::vector<TcpEntry>& table, const TcpEnd& end);

}  // namespace muster
