#include "worker/stage/files.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "common/read_at.h"
#include "common/status.h"

namespace muster::stage {
namespace {

constexpr int kOpenFolders = 64;

// For nftw, which passes no argument of ours: the first error is what errno says after it.
int RemoveOne(const char* path, const struct stat*, int, FTW*) {
  return std::remove(path);
}

int OpenUp(const char* path, const struct stat* info, int kind, FTW*) {
  if (kind == FTW_D || kind == FTW_DNR) return chmod(path, info->st_mode | 0700);
  return 0;
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t most) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat info;
  if (!fd || fstat(fd.get(), &info) != 0) return PosixError("open " + path);
  if (static_cast<uint64_t>(info.st_size) > most)
    return absl::OutOfRangeError(path + ": too large");
  return ReadAt(fd.get(), 0, static_cast<uint64_t>(info.st_size), path);
}

absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes) {
  const std::string temporary = path + ".new";
  UniqueFd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return PosixError("open " + temporary);
  MUSTER_RETURN_IF_ERROR(WriteAt(fd.get(), 0, bytes, temporary));
  if (fsync(fd.get()) != 0) return PosixError("fsync " + temporary);
  fd.reset();
  if (rename(temporary.c_str(), path.c_str()) != 0) return PosixError("rename to " + path);
  // The name is durable with its folder.
  const std::string folder = path.substr(0, path.rfind('/'));
  const UniqueFd parent(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent || fsync(parent.get()) != 0) return PosixError("fsync " + folder);
  return absl::OkStatus();
}

absl::Status WriteAt(int fd, uint64_t offset, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return PosixError("write " + path);
    bytes.remove_prefix(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return absl::OkStatus();
}

bool Exists(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0;
}

uint64_t ReadableSize(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return 0;
  return static_cast<uint64_t>(info.st_size);
}

absl::Status MakeFolders(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) return PosixError("make folder " + part);
    if (slash == std::string::npos) break;
  }
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return PosixError(path);
  return S_ISDIR(info.st_mode) ? absl::OkStatus() : PosixError(path, ENOTDIR);
}

absl::Status RemoveTree(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? absl::OkStatus() : PosixError("remove " + path);
  }
  if (nftw(path.c_str(), OpenUp, kOpenFolders, FTW_PHYS) != 0 ||
      nftw(path.c_str(), RemoveOne, kOpenFolders, FTW_PHYS | FTW_DEPTH) != 0) {
    return PosixError("remove " + path);
  }
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> LockFile(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return PosixError("open " + path);
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return PosixError("lock " + path);
    return absl::UnavailableError(path + ": another transfer has it");
  }
  // Its last holder may have removed it: then the name is another file's by now, or nobody's.
  struct stat info;
  if (fstat(fd.get(), &info) != 0 || info.st_nlink == 0)
    return absl::UnavailableError(path + " was removed just now");
  return fd;
}

absl::StatusOr<uint64_t> FreeBytes(const std::string& path) {
  struct statvfs info;
  if (statvfs(path.c_str(), &info) != 0) return PosixError("ask for free space in " + path);
  return uint64_t{info.f_bavail} * info.f_frsize;
}

}  // namespace muster::stage
