#include "common/unix_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/status.h"

namespace muster {
namespace {

// An address for `path`, however long: the folder is named by a descriptor that stays open beside
// the address.
struct Address {
  UniqueFd folder;
  sockaddr_un name{};

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

absl::StatusOr<Address> MakeAddress(const std::string& path) {
  Address address;
  address.name.sun_family = AF_UNIX;
  std::string reachable = path;
  if (path.size() >= sizeof address.name.sun_path) {
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    address.folder.reset(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!address.folder) return PosixError("open " + folder);
    reachable = "/proc/self/fd/" + std::to_string(address.folder.get()) + "/" +
                path.substr(slash == std::string::npos ? 0 : slash + 1);
    if (reachable.size() >= sizeof address.name.sun_path) {
      return PosixError("socket " + path, ENAMETOOLONG);
    }
  }
  std::memcpy(address.name.sun_path, reachable.data(), reachable.size());
  return address;
}

absl::StatusOr<UniqueFd> NewSocket() {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return PosixError("socket");
  return fd;
}

// Of a listener's connection: who connected. Of our own: who listens.
absl::StatusOr<ucred> PeerOf(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return PosixError("SO_PEERCRED");
  return peer;
}

}  // namespace

absl::StatusOr<UniqueFd> ListenUnix(const std::string& path) {
  absl::StatusOr<UniqueFd> other = ConnectUnix(path);
  if (other.ok()) {
    return absl::AlreadyExistsError("listen on " + path + ": another process answers there");
  }
  // A refused connection means a socket file whose owner has gone.
  if (absl::IsUnavailable(other.status()) && unlink(path.c_str()) != 0 && errno != ENOENT) {
    return PosixError("remove the stale socket " + path);
  }
  MUSTER_ASSIGN_OR_RETURN(UniqueFd fd, NewSocket());
  MUSTER_ASSIGN_OR_RETURN(Address address, MakeAddress(path));
  // The mode of the file before anybody can connect; bind() would apply the process's umask.
  if (fchmod(fd.get(), 0600) != 0) return PosixError("chmod " + path);
  if (bind(fd.get(), address.get(), sizeof address.name) != 0) return PosixError("bind " + path);
  if (chmod(path.c_str(), 0600) != 0) return PosixError("chmod " + path);
  if (listen(fd.get(), 128) != 0) return PosixError("listen on " + path);
  return fd;
}

absl::Status CheckUnixPeer(int fd, uid_t uid) {
  MUSTER_ASSIGN_OR_RETURN(const ucred peer, PeerOf(fd));
  if (peer.uid == uid) return absl::OkStatus();
  return absl::PermissionDeniedError("it is of uid " + std::to_string(peer.uid) + " (pid " +
                                     std::to_string(peer.pid) + "): only uid " +
                                     std::to_string(uid) + " may connect");
}

absl::StatusOr<UniqueFd> ConnectUnix(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(UniqueFd fd, NewSocket());
  MUSTER_ASSIGN_OR_RETURN(Address address, MakeAddress(path));
  if (connect(fd.get(), address.get(), sizeof address.name) != 0) {
    const int error = errno;
    // EAGAIN: its accept queue is full, so somebody is there.
    if (error == EAGAIN) return absl::ResourceExhaustedError("connect " + path + ": too busy");
    if (error == ECONNREFUSED)
      return absl::UnavailableError("connect " + path + ": nobody listens");
    return PosixError("connect " + path, error);
  }
  MUSTER_ASSIGN_OR_RETURN(const ucred peer, PeerOf(fd.get()));
  if (peer.uid != geteuid() && peer.uid != 0) {
    return absl::PermissionDeniedError("connect " + path + ": uid " + std::to_string(peer.uid) +
                                       " (pid " + std::to_string(peer.pid) +
                                       ") listens there, not you: remove that folder, or set "
                                       "MUSTER_STATE to a folder of yours");
  }
  return fd;
}

}  // namespace muster
