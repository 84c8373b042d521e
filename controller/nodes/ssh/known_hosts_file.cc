#include "controller/nodes/ssh/known_hosts_file.h"

#include <absl/synchronization/mutex.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

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
  if (write(fd.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    return PosixError("add a host key to " + path);
  }
  return absl::OkStatus();
}

}  // namespace muster::nodes::ssh
