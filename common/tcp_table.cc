#include "common/tcp_table.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <sstream>

#include "common/unique_fd.h"

namespace muster {
namespace {

constexpr unsigned kTcpListen = 0x0a;

std::string StripMapped(const std::string& address) {
  static const std::string prefix = std::string(10, '\0') + "\xff\xff";
  return address.size() == 16 && address.compare(0, 12, prefix) == 0 ? address.substr(12) : address;
}

// "0100007F:1D29": the address in 32-bit words as the machine (little endian) holds them.
std::optional<TcpEnd> ParseEnd(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon != 8 && colon != 32) return std::nullopt;
  TcpEnd end;
  for (size_t word = 0; word < colon; word += 8) {
    const auto value =
        static_cast<uint32_t>(std::strtoul(text.substr(word, 8).c_str(), nullptr, 16));
    char bytes[4];
    std::memcpy(bytes, &value, sizeof bytes);
    end.address.append(bytes, sizeof bytes);
  }
  end.address = StripMapped(end.address);
  end.port = static_cast<uint16_t>(std::strtoul(text.c_str() + colon + 1, nullptr, 16));
  return end;
}

std::string ReadAll(const char* path) {
  const UniqueFd fd(open(path, O_RDONLY | O_CLOEXEC));
  std::string text;
  char buffer[65536];
  while (fd) {
    const ssize_t n = read(fd.get(), buffer, sizeof buffer);
    if (n <= 0) break;
    text.append(buffer, static_cast<size_t>(n));
  }
  return text;
}

}  // namespace

std::vector<TcpEntry> ParseTcpTable(const std::string& text) {
  std::vector<TcpEntry> table;
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);  // headings
  while (std::getline(lines, line)) {
    std::istringstream in(line);
    std::string slot, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
    in >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> uid >> timeout >>
        inode;
    const auto local_end = ParseEnd(local);
    const auto remote_end = ParseEnd(remote);
    if (!local_end || !remote_end || inode.empty()) continue;
    TcpEntry entry;
    entry.local = *local_end;
    entry.remote = *remote_end;
    entry.listening = std::strtoul(state.c_str(), nullptr, 16) == kTcpListen;
    entry.uid = static_cast<uint32_t>(std::strtoul(uid.c_str(), nullptr, 10));
    entry.inode = std::strtoull(inode.c_str(), nullptr, 10);
    table.push_back(entry);
  }
  return table;
}

std::vector<TcpEntry> ReadTcpTable() {
  std::vector<TcpEntry> table = ParseTcpTable(ReadAll("/proc/net/tcp"));
  for (TcpEntry& entry : ParseTcpTable(ReadAll("/proc/net/tcp6")))
    table.push_back(std::move(entry));
  return table;
}

std::optional<TcpEnd> ToTcpEnd(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, &address, sizeof in);
    return TcpEnd{std::string(reinterpret_cast<const char*>(&in.sin_addr), 4), ntohs(in.sin_port)};
  }
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 in;
    std::memcpy(&in, &address, sizeof in);
    return TcpEnd{StripMapped(std::string(reinterpret_cast<const char*>(&in.sin6_addr), 16)),
                  ntohs(in.sin6_port)};
  }
  return std::nullopt;
}

std::optional<uint32_t> OwnerOfConnection(const std::vector<TcpEntry>& table, const TcpEnd& local,
                                          const TcpEnd& remote) {
  for (const TcpEntry& entry : table) {
    // A socket that its process has closed already (inode 0) is shown as root's, whoever it was.
    if (entry.inode == 0 || entry.listening) continue;
    if (entry.local == local && entry.remote == remote) return entry.uid;
  }
  return std::nullopt;
}

std::optional<uint32_t> OwnerOfListener(const std::vector<TcpEntry>& table, const TcpEnd& end) {
  std::optional<uint32_t> owner;
  for (const TcpEntry& entry : table) {
    if (entry.inode == 0 || !entry.listening || entry.local.port != end.port) continue;
    // The kernel prefers the listener on the address itself to one on all addresses.
    if (entry.local == end) return entry.uid;
    if (entry.local.IsAny()) owner = entry.uid;
  }
  return owner;
}

}  // namespace muster
