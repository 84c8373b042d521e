#include "worker/ranks/shim_link.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "common/clock.h"
#include "common/log.h"
#include "common/spawn.h"
#include "common/status.h"
#include "worker/shim/frame.h"

namespace muster::ranks {
namespace {

constexpr uint64_t kMaxExitRecord = 1u << 20;

// Rank folders are longer than the 108 bytes of a socket address: go through a descriptor of the
// folder.
class FolderAddress {
 public:
  explicit FolderAddress(const std::string& folder)
      : folder_(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
    address_.sun_family = AF_UNIX;
    const std::string path =
        "/proc/self/fd/" + std::to_string(folder_.get()) + "/" + shim::kSocketFile;
    std::strncpy(address_.sun_path, path.c_str(), sizeof address_.sun_path - 1);
  }
  bool ok() const { return static_cast<bool>(folder_); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }

 private:
  const UniqueFd folder_;
  sockaddr_un address_{};
};

absl::StatusOr<UniqueFd> Connect(const std::string& folder) {
  const FolderAddress address(folder);
  if (!address.ok()) return PosixError("open " + folder);
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return PosixError("socket");
  if (connect(fd.get(), address.get(), sizeof(sockaddr_un)) != 0) {
    return PosixError("connect " + folder + "/" + shim::kSocketFile);
  }
  return fd;
}

absl::StatusOr<UniqueFd> Listen(const std::string& folder) {
  const FolderAddress address(folder);
  if (!address.ok()) return PosixError("open " + folder);
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) return PosixError("socket");
  unlink((folder + "/" + shim::kSocketFile).c_str());
  if (bind(fd.get(), address.get(), sizeof(sockaddr_un)) != 0 || listen(fd.get(), 8) != 0) {
    return PosixError("listen on " + folder + "/" + shim::kSocketFile);
  }
  return fd;
}

absl::StatusOr<pid_t> SpawnShim(const std::string& program, const std::string& folder,
                                int listener) {
  const std::string path = folder + "/" + shim::kShimLogFile;
  const UniqueFd log(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log) return PosixError("open " + path);
  // An empty environment: nothing of the daemon's, and no marker, reaches the shim.
  std::vector<std::string> environment;
  if (const char* const skew = std::getenv(kClockSkewVariable)) {
    environment.emplace_back(kClockSkewVariable).append("=").append(skew);
  }
  auto pid = muster::Spawn({.words = {"muster-shim", folder},
                            .program = program,
                            .environment = std::move(environment),
                            .err = log.get(),
                            .pass = {{listener, shim::kListenFd}},
                            .group = SpawnOptions::Group::kOwnSession});
  if (!pid.ok()) return Annotate(pid.status(), "start");
  return pid;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ShimLink>> ShimLink::Spawn(Reactor& reactor,
                                                          const std::string& program,
                                                          const std::string& folder,
                                                          Callbacks callbacks) {
  MUSTER_ASSIGN_OR_RETURN(const UniqueFd listener, Listen(folder));
  MUSTER_ASSIGN_OR_RETURN(UniqueFd socket, Connect(folder));
  MUSTER_ASSIGN_OR_RETURN(const pid_t pid, SpawnShim(program, folder, listener.get()));
  return std::unique_ptr<ShimLink>(
      new ShimLink(reactor, folder, std::move(socket), pid, std::move(callbacks)));
}

absl::StatusOr<std::unique_ptr<ShimLink>> ShimLink::Adopt(Reactor& reactor,
                                                          const std::string& folder,
                                                          Callbacks callbacks) {
  absl::StatusOr<UniqueFd> socket = Connect(folder);
  if (!socket.ok()) return absl::NotFoundError(socket.status().message());
  return std::unique_ptr<ShimLink>(
      new ShimLink(reactor, folder, *std::move(socket), 0, std::move(callbacks)));
}

ShimLink::ShimLink(Reactor& reactor, std::string folder, UniqueFd socket, pid_t shim_pid,
                   Callbacks callbacks)
    : reactor_(reactor),
      folder_(std::move(folder)),
      socket_(std::move(socket)),
      shim_pid_(shim_pid),
      callbacks_(std::move(callbacks)) {
  reactor_.Watch(socket_.get(), [this] { Read(); });
}

ShimLink::~ShimLink() {
  if (socket_) reactor_.Unwatch(socket_.get());
}

void ShimLink::Send(shim::ShimCommand command) {
  SendPacket(std::string(1, static_cast<char>(command)));
}

void ShimLink::SendAcknowledged(size_t stream, uint64_t offset) {
  shim::FieldWriter packet;
  packet.U8(static_cast<uint8_t>(shim::ShimCommand::kAcknowledge));
  packet.U8(static_cast<uint8_t>(stream));
  packet.U64(offset);
  SendPacket(packet.Take());
}

void ShimLink::SendPacket(const std::string& packet) {
  // It fits the socket's buffer unless the shim hangs; a shim that is gone is told by Read.
  if (send(socket_.get(), packet.data(), packet.size(), MSG_NOSIGNAL) < 0 && errno != EPIPE &&
      errno != ECONNRESET) {
    log::Warning("shim in " + folder_ + " takes no commands: " + std::strerror(errno));
  }
}

void ShimLink::Read() {
  std::array<char, 65536> packet;
  while (true) {
    const ssize_t n = recv(socket_.get(), packet.data(), packet.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) break;
    std::string error;
    const auto status = shim::DecodeShimStatus({packet.data(), static_cast<size_t>(n)}, error);
    if (!status) {
      log::Warning("shim in " + folder_ + " sent a bad message: " + error);
      continue;
    }
    shim_pid_ = status->shim_pid;
    // One message a call: the callback may destroy this link; epoll calls again for the rest.
    callbacks_.status(*status);
    return;
  }
  reactor_.Unwatch(socket_.get());
  socket_.reset();
  const auto gone = std::move(callbacks_.gone);
  gone(ReadExitRecord(folder_));
}

std::optional<shim::ShimStatus> ReadExitRecord(const std::string& folder) {
  std::string error;
  const auto file = shim::ReadWholeFile(folder + "/" + shim::kExitFile, kMaxExitRecord, error);
  if (!file) return std::nullopt;
  auto status = shim::DecodeShimStatus(*file, error);
  if (!status) log::Warning(folder + "/" + shim::kExitFile + ": " + error);
  return status;
}

}  // namespace muster::ranks
