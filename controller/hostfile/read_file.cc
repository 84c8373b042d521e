#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "common/status.h"
#include "common/unique_fd.h"
#include "controller/hostfile/allocation.h"
#include "controller/hostfile/hostfile.h"
#include "controller/hostfile/text.h"

namespace muster::hostfile {
namespace {

// A pipe that has a place in a file system, unlike the shell's <(...).
bool IsNamedPipe(int fd) {
  struct stat file {};
  struct statfs system {};
  return fstat(fd, &file) == 0 && S_ISFIFO(file.st_mode) && fstatfs(fd, &system) == 0 &&
         system.f_type != PIPEFS_MAGIC;
}

// At most one byte more than a hostfile may have, so that the parser can say that it is too large.
// Pipes work too:
// --hostfile <(make-hosts).
absl::StatusOr<std::string> ReadSome(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return PosixError("open " + path);
  if (IsNamedPipe(fd.get())) {
    return absl::InvalidArgumentError(fmt::format(
        "open {}: a named pipe, which may never be written to: give a file, or <(COMMAND)", path));
  }
  if (fcntl(fd.get(), F_SETFL, 0) < 0) return PosixError("open " + path);
  std::string bytes;
  std::array<char, 65536> buffer;
  while (bytes.size() <= kMaxFileBytes) {
    const ssize_t n = read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return PosixError("read " + path);
    if (n == 0) break;
    bytes.append(buffer.data(), static_cast<size_t>(n));
  }
  return bytes;
}

}  // namespace

AllocationSources AllocationSources::Real() {
  AllocationSources out;
  out.get_env = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
  out.read_file = ReadSome;
  return out;
}

Result ReadHostfile(const std::string& path) {
  const absl::StatusOr<std::string> bytes = ReadSome(path);
  Result result;
  if (bytes.ok()) {
    result = ParseHostfile(*bytes);
  } else {
    result.errors.push_back({0, std::string(bytes.status().message())});
  }
  if (result.ok()) result.inventory.set_source(path);
  return result;
}

}  // namespace muster::hostfile
