#include "worker/daemon/state_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "common/status.h"

namespace muster::worker {
namespace {

constexpr char kLockFile[] = "lock";
constexpr int kMostLooks = 10;
constexpr std::chrono::milliseconds kLookAgain{10};

// In /var/tmp anybody can make a folder of our name first.
absl::Status CheckOurs(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return PosixError("state folder " + path);
  if (!S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError("state folder " + path + " is not a folder");
  }
  if (info.st_uid != getuid()) {
    return absl::PermissionDeniedError(
        "state folder " + path + " belongs to uid " + std::to_string(info.st_uid) +
        ", not to you (uid " + std::to_string(getuid()) + "): choose another with --state-dir");
  }
  if ((info.st_mode & 077) != 0 && chmod(path.c_str(), 0700) != 0) {
    return PosixError("chmod 0700 " + path);
  }
  return absl::OkStatus();
}

absl::Status MakePrivate(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return PosixError("create " + path);
  return CheckOurs(path);
}

std::string ReadPid(int fd) {
  char text[32];
  const ssize_t n = pread(fd, text, sizeof text, 0);
  const std::string pid(text, n > 0 ? static_cast<size_t>(n) : 0);
  return pid.substr(0, pid.find('\n'));
}

}  // namespace

std::string StateDirPath(const std::string& given, const std::string& name) {
  // As it is where the working folder is gone: what opens it says so.
  const auto absolute = [](const std::string& path) {
    std::error_code error;
    const auto full = std::filesystem::absolute(path, error);
    return (error ? std::filesystem::path(path) : full).lexically_normal().string();
  };
  if (!given.empty()) return absolute(given);
  const char* parent = std::getenv("MUSTER_STATE");
  if (parent != nullptr && *parent != '\0') {
    return absolute(std::string(parent) + "/" + name);
  }
  return "/var/tmp/muster-" + std::to_string(getuid()) + "/" + name;
}

absl::StatusOr<StateDir> OpenStateDir(const std::string& given) {
  StateDir state;
  state.path = given;
  while (state.path.size() > 1 && state.path.back() == '/') state.path.pop_back();
  const std::filesystem::path parent = std::filesystem::path(state.path).parent_path();
  std::error_code error;
  std::filesystem::create_directories(parent.parent_path(), error);
  // The usual parent is our own too; another one (/tmp, /data) may be anybody's.
  if (parent.filename() == "muster-" + std::to_string(getuid())) {
    MUSTER_RETURN_IF_ERROR(MakePrivate(parent));
  } else {
    std::filesystem::create_directories(parent, error);
  }
  MUSTER_RETURN_IF_ERROR(MakePrivate(state.path));
  const std::string lock = state.path + "/" + kLockFile;
  state.lock.reset(open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!state.lock) return PosixError("open " + lock);
  // A bridge that looks whether somebody serves here holds it for a moment.
  for (int looks = 0; flock(state.lock.get(), LOCK_EX | LOCK_NB) != 0; ++looks) {
    if (errno == EWOULDBLOCK && looks < kMostLooks) {
      std::this_thread::sleep_for(kLookAgain);
      continue;
    }
    if (errno != EWOULDBLOCK) return PosixError("lock " + lock);
    return absl::AlreadyExistsError("another musterd (pid " + ReadPid(state.lock.get()) +
                                    ") already serves " + state.path +
                                    ": use it, or give this one another --name or --state-dir");
  }
  // What the last daemon said of itself must not be taken for ours.
  if (ftruncate(state.lock.get(), 0) != 0) return PosixError("truncate " + lock);
  return state;
}

}  // namespace muster::worker
