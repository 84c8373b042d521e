#include "controller/api/state_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>

#include "common/status.h"
#include "common/unix_socket.h"

namespace muster::api {
namespace {

// File systems on which neither a Unix socket nor a lock nor SQLite can be trusted. Numbers of
// statfs(2).
constexpr long kNetworkFileSystems[] = {
    0x6969,      // NFS
    0x517B,      // SMB
    0xFE534D42,  // SMB2
    0xFF534D42,  // CIFS
    0x0BD00BD0,  // Lustre
    0x47504653,  // GPFS
    0x00C36400,  // Ceph
    0x65735546,  // FUSE
    0x19830326,  // BeeGFS
};

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Judges the nearest folder above `path` that exists.
bool IsLocal(std::filesystem::path path) {
  struct statfs info {};
  while (statfs(path.c_str(), &info) != 0) {
    if (!path.has_relative_path()) return false;
    path = path.parent_path();
  }
  for (const long network : kNetworkFileSystems) {
    if (static_cast<long>(info.f_type) == network) return false;
  }
  return true;
}

// In /var/tmp anybody can make a folder of our name first.
absl::Status MakePrivate(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return PosixError("make folder " + path);
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return PosixError("stat " + path);
  if (!S_ISDIR(info.st_mode)) return absl::FailedPreconditionError(path + " is not a folder");
  if (info.st_uid != geteuid()) {
    return absl::FailedPreconditionError(path + " belongs to uid " + std::to_string(info.st_uid) +
                                         ", not to us: remove it, or set MUSTER_STATE to a folder "
                                         "of yours");
  }
  if ((info.st_mode & 077) != 0 && chmod(path.c_str(), 0700) != 0) {
    return PosixError("chmod " + path);
  }
  return absl::OkStatus();
}

// The folder of this user's nodes and controller in /var/tmp.
std::string UserDirName() {
  return "muster-" + std::to_string(getuid());
}

absl::Status MakeStateDir(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const bool ours = parent.filename() == UserDirName();
  std::error_code error;
  std::filesystem::create_directories(ours ? parent.parent_path() : parent, error);
  if (error) return PosixError("make the folder of " + path, error.value());
  if (ours) MUSTER_RETURN_IF_ERROR(MakePrivate(parent.string()));
  return MakePrivate(path);
}

constexpr std::chrono::milliseconds kLookAgain{20};

// What the lock file says of its holder; 0: nothing.
pid_t WrittenPid(int fd) {
  char text[32] = {};
  const ssize_t n = pread(fd, text, sizeof text - 1, 0);
  const long pid = n > 0 ? std::strtol(text, nullptr, 10) : 0;
  return pid > 0 ? static_cast<pid_t>(pid) : 0;
}

std::string Describe(pid_t holder) {
  return holder > 0 ? "pid " + std::to_string(holder) : "another process";
}

}  // namespace

std::string DefaultStateDir() {
  if (const std::string parent = Variable("MUSTER_STATE"); !parent.empty()) {
    return parent + "/controller";
  }
  const std::string xdg = Variable("XDG_STATE_HOME");
  if (!xdg.empty() && xdg.front() == '/' && IsLocal(xdg)) return xdg + "/muster";
  return "/var/tmp/" + UserDirName() + "/controller";
}

std::string SocketPath(const std::string& state_dir) {
  return state_dir + "/controller.sock";
}

StateLock::StateLock(std::string state_dir, UniqueFd fd)
    : state_dir_(std::move(state_dir)), fd_(std::move(fd)) {}

std::optional<pid_t> StateLock::Holder(const std::string& state_dir) {
  const std::string path = state_dir + "/controller.lock";
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return std::nullopt;
  if (flock(fd.get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return std::nullopt;
  return WrittenPid(fd.get());
}

absl::StatusOr<StateLock> StateLock::Acquire(const std::string& state_dir,
                                             std::chrono::milliseconds wait) {
  MUSTER_RETURN_IF_ERROR(MakeStateDir(state_dir));
  const std::string path = state_dir + "/controller.lock";
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return PosixError("open " + path);
  const auto deadline = std::chrono::steady_clock::now() + wait;
  while (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return PosixError("lock " + path);
    const bool serves = ConnectUnix(SocketPath(state_dir)).ok();
    if (serves || std::chrono::steady_clock::now() >= deadline) {
      return absl::FailedPreconditionError("a controller runs already for " + state_dir + " (" +
                                           Describe(WrittenPid(fd.get())) +
                                           "): use that one, or end it first");
    }
    std::this_thread::sleep_for(kLookAgain);
  }
  const std::string pid = std::to_string(getpid()) + "\n";
  if (ftruncate(fd.get(), 0) != 0 ||
      pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return PosixError("write " + path);
  }
  return StateLock(state_dir, std::move(fd));
}

}  // namespace muster::api
