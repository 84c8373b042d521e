#include "controller/nodes/ssh/system_source.h"

#include <fcntl.h>
#include <glob.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "common/status.h"
#include "controller/nodes/child_process.h"

namespace muster::nodes::ssh {
namespace {

constexpr size_t kBiggestFile = 1 << 20;
constexpr std::chrono::seconds kExecLimit{10};
constexpr std::chrono::milliseconds kExecPoll{20};

LocalUser WhoAmI() {
  LocalUser user;
  user.uid = getuid();
  std::array<char, 16384> buffer;
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    user.name = found->pw_name;
    user.home = found->pw_dir;
  } else {
    // No entry, as in containers with a foreign uid.
    const char* name = std::getenv("USER");
    const char* home = std::getenv("HOME");
    user.name = name != nullptr ? name : std::to_string(user.uid);
    user.home = home != nullptr ? home : "/";
  }
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) user.host = host.data();
  return user;
}

}  // namespace

SystemSource::SystemSource(const StopSignal* stop) : stop_(stop), user_(WhoAmI()) {}

absl::StatusOr<std::optional<std::string>> SystemSource::Read(const std::string& path,
                                                              bool check_owner) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    return PosixError("read " + path);
  }
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return PosixError("stat " + path);
  // /dev/null is a usual way to say "none".
  if (!S_ISREG(info.st_mode) && !S_ISCHR(info.st_mode)) {
    return absl::InvalidArgumentError(path + " is no file");
  }
  const bool ours = info.st_uid == 0 || info.st_uid == getuid();
  if (check_owner && (!ours || (info.st_mode & 022) != 0)) {
    return absl::PermissionDeniedError(
        path + ": others than you may write it, so it is not read; set it right with chmod go-w " +
        path + (ours ? "" : " and chown"));
  }
  std::string text;
  std::array<char, 16384> buffer;
  while (true) {
    const ssize_t n = read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return PosixError("read " + path);
    if (n == 0) return text;
    text.append(buffer.data(), static_cast<size_t>(n));
    if (text.size() > kBiggestFile) {
      return absl::InvalidArgumentError(path +
                                        " is larger than 1 MiB, which no ssh configuration "
                                        "is");
    }
  }
}

std::vector<std::string> SystemSource::Glob(const std::string& pattern) {
  std::vector<std::string> paths;
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  }
  globfree(&found);
  return paths;
}

absl::StatusOr<bool> SystemSource::Run(const std::string& command) {
  // Its stdin ends at once, its output is nobody's.
  auto started = ChildProcess::Start(
      {"/bin/sh", "-c", "exec \"$0\" -c \"$1\" </dev/null >/dev/null 2>&1", UserShell(), command});
  if (!started.ok()) return Annotate(started.status(), "Match exec");
  const auto deadline = std::chrono::steady_clock::now() + kExecLimit;
  while (std::chrono::steady_clock::now() < deadline) {
    if (const auto status = started->process->WaitEnd(kExecPoll)) return *status == 0;
    if (stop_ != nullptr && stop_->is_set()) return absl::CancelledError("closed");
  }
  return absl::DeadlineExceededError("Match exec '" + command + "' did not end within 10 s");
}

std::optional<std::string> SystemSource::Env(const std::string& name) const {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

std::string UserShell() {
  const char* shell = std::getenv("SHELL");
  return shell != nullptr && *shell != '\0' ? shell : "/bin/sh";
}

}  // namespace muster::nodes::ssh
