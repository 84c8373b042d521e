#include "controller/nodes/ssh/known_hosts_file.h"

#include <absl/synchronization/mutex.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>

#include "common/status.h"
#include "common/unique_fd.h"

namespace muster::nodes::ssh {
namespace {

constexpr size_t kBiggestFile = 64 << 20;

bool EndsWithNewline(int fd) {
  char last = '\n';
  const off_t size = lseek(fd, 0, SEEK_END);
  return size <= 0 || pread(fd, &last, 1, size - 1) != 1 || last == '\n';
}

// All of it or nothing: half a key at the end would be taken for another one by whoever reads it.
absl::Status WriteWhole(int fd, std::string_view bytes, const std::string& path) {
  size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t n = write(fd, bytes.data() + written, bytes.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    written += static_cast<size_t>(n);
  }
  if (written == bytes.size()) return absl::OkStatus();
  absl::Status failed = PosixError("add a host key to " + path);
  const off_t end = lseek(fd, 0, SEEK_CUR);  // of what was appended
  struct stat info;
  // Unless another program has appended meanwhile.
  if (written > 0 && fstat(fd, &info) == 0 && info.st_size == end &&
      ftruncate(fd, end - static_cast<off_t>(written)) != 0) {
    return Annotate(failed, "half a line stays");
  }
  return failed;
}

}  // namespace

absl::StatusOr<std::string> ReadKnownHosts(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) {
    if (errno == ENOENT || errno == ENOTDIR) return "";
    return PosixError("read " + path);
  }
  std::string text;
  std::array<char, 65536> buffer;
  while (true) {
    const ssize_t n = read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return PosixError("read " + path);
    if (n == 0) return text;
    text.append(buffer.data(), static_cast<size_t>(n));
    if (text.size() > kBiggestFile) {
      return absl::InvalidArgumentError(path + " is larger than 64 MiB");
    }
  }
}

absl::Status AppendKnownHosts(const std::string& path, const std::string& line) {
  // Between the look at the last byte and the write; other programs' appends are whole lines.
  static absl::Mutex mutex(absl::kConstInit);
  absl::MutexLock lock(&mutex);
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (!folder.empty() && mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return PosixError("make " + folder);
  }
  const UniqueFd fd(open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return PosixError("add a host key to " + path);
  const std::string bytes = (EndsWithNewline(fd.get()) ? "" : "\n") + line;
  return WriteWhole(fd.get(), bytes, path);
}

}  // namespace muster::nodes::ssh
