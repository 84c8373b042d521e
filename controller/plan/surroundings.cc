#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>

#include "common/status.h"
#include "common/unique_fd.h"
#include "controller/plan/recipe.h"

namespace muster::plan {
namespace {

constexpr size_t kMaxFile = 1 << 20;  // recipes and secrets are small

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return PosixError("open " + path);
  std::string out;
  std::array<char, 65536> buffer;
  while (true) {
    const ssize_t n = read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return PosixError("read " + path);
    if (n == 0) return out;
    out.append(buffer.data(), static_cast<size_t>(n));
    if (out.size() > kMaxFile) {
      return absl::InvalidArgumentError(
          fmt::format("read {}: larger than {} MiB", path, kMaxFile >> 20));
    }
  }
}

std::string CurrentFolder() {
  std::array<char, PATH_MAX> buffer;
  const char* path = getcwd(buffer.data(), buffer.size());
  return path == nullptr ? "/" : path;
}

}  // namespace

Surroundings Surroundings::Real(std::string bin_dir) {
  Surroundings out;
  out.bin_dir = std::move(bin_dir);
  out.working_dir = CurrentFolder();
  out.get_env = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  out.read_file = ReadFile;
  out.is_executable = [](const std::string& path) { return access(path.c_str(), X_OK) == 0; };
  return out;
}

}  // namespace muster::plan
