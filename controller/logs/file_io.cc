#include "controller/logs/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "common/status.h"

namespace muster::logs {

absl::Status WriteAt(int fd, uint64_t offset, std::string_view data, const std::string& path,
                     size_t& written) {
  written = 0;
  while (written < data.size()) {
    const ssize_t n = pwrite(fd, data.data() + written, data.size() - written,
                             static_cast<off_t>(offset + written));
    if (n < 0) {
      if (errno == EINTR) continue;
      return PosixError("write " + path);
    }
    written += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> ReadInto(int fd, uint64_t offset, char* buffer, size_t size,
                                const std::string& path) {
  size_t done = 0;
  while (done < size) {
    const ssize_t n = pread(fd, buffer + done, size - done, static_cast<off_t>(offset + done));
    if (n < 0) {
      if (errno == EINTR) continue;
      return PosixError("read " + path);
    }
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

absl::StatusOr<std::string> ReadAt(int fd, uint64_t offset, size_t size, const std::string& path) {
  std::string data(size, '\0');
  MUSTER_ASSIGN_OR_RETURN(const size_t n, ReadInto(fd, offset, data.data(), size, path));
  data.resize(n);
  return data;
}

absl::StatusOr<uint64_t> FileSize(int fd, const std::string& path) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return PosixError("stat " + path);
  return static_cast<uint64_t>(info.st_size);
}

absl::StatusOr<UniqueFd> OpenFile(const std::string& path, int flags) {
  UniqueFd fd(open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!fd) return PosixError("open " + path);
  return fd;
}

absl::Status MakeDirs(const std::string& path) {
  if (mkdir(path.c_str(), 0777) == 0) return absl::OkStatus();
  if (errno == EEXIST) {
    struct stat info {};
    if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return absl::OkStatus();
    return PosixError("make folder " + path, ENOTDIR);
  }
  const size_t slash = path.find_last_of('/');
  if (errno != ENOENT || slash == std::string::npos || slash == 0) {
    return PosixError("make folder " + path);
  }
  MUSTER_RETURN_IF_ERROR(MakeDirs(path.substr(0, slash)));
  if (mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) return PosixError("make folder " + path);
  return absl::OkStatus();
}

absl::Status SyncDir(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(path, O_RDONLY | O_DIRECTORY));
  if (fsync(fd.get()) != 0) return PosixError("sync folder " + path);
  return absl::OkStatus();
}

}  // namespace muster::logs
