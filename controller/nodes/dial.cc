#include "controller/nodes/dial.h"

#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/tcp_table.h"
#include "controller/nodes/limits.h"
#include "controller/nodes/tcp.h"

namespace muster::nodes {
namespace {

// What helps when nobody could be reached.
absl::Status WithFix(const absl::Status& why, const std::string& address, uint32_t port) {
  std::string message(why.message());
  // The address that the user wrote need not be said twice.
  const std::string place = address + " port " + std::to_string(port) + ": ";
  if (message.starts_with(place)) message.erase(0, place.size());
  if (absl::IsFailedPrecondition(why)) {
    return absl::FailedPreconditionError(message +
                                         "; correct the name, or give the host's line an addr=IP");
  }
  if (!absl::IsUnavailable(why)) return absl::Status(why.code(), message);
  const bool v6 = address.find(':') != std::string::npos;
  return absl::UnavailableError(message +
                                ": is musterd running there? start it with: musterd --listen " +
                                (v6 ? "[" + address + "]" : address) + ":" + std::to_string(port));
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
  auto fd = ConnectTcp(address, static_cast<uint16_t>(port), AF_UNSPEC, StartLimits(timeout, stop));
  return fd.ok() ? std::move(fd) : WithFix(fd.status(), address, port);
}

absl::StatusOr<UniqueFd> DialOwnTcp(const std::string& address, uint32_t port,
                                    std::chrono::milliseconds timeout, const StopSignal& stop) {
  MUSTER_ASSIGN_OR_RETURN(UniqueFd fd, DialTcp(address, port, timeout, stop));
  MUSTER_RETURN_IF_ERROR(CheckPeer(fd.get()));
  return fd;
}

}  // namespace muster::nodes
