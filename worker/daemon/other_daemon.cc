#include "worker/daemon/other_daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>

#include "common/unique_fd.h"
#include "common/version.h"

namespace muster::worker {
namespace {

constexpr std::chrono::seconds kEndLimit(10);
constexpr std::chrono::milliseconds kPoll(20);
constexpr unsigned kFirstProtocol = 1;

template <typename Number>
Number ParseNumber(std::string_view text, Number otherwise) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : otherwise;
}

std::string LockPath(const std::string& state_dir) {
  return state_dir + "/lock";
}

// Whether this process has the lock file open. A pid that a daemon of another container wrote there
// means another process here, or none.
bool HasLockOpen(pid_t pid, const std::string& state_dir) {
  struct stat lock;
  if (stat(LockPath(state_dir).c_str(), &lock) != 0) return false;
  std::error_code error;
  const std::filesystem::path folder = "/proc/" + std::to_string(pid) + "/fd";
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    struct stat file;
    if (stat(entry.path().c_str(), &file) == 0 && file.st_dev == lock.st_dev &&
        file.st_ino == lock.st_ino) {
      return true;
    }
  }
  return false;
}

// "<controller>/<job>" of each shim whose rank folder lies below the state folder.
std::set<std::string> JobsWithRanks(const std::string& state_dir, const facts::ProcReader& proc) {
  const std::string words = "muster-shim " + state_dir + "/jobs/";
  std::set<std::string> jobs;
  for (const pid_t pid : proc.Pids()) {
    const std::string command = proc.Command(pid);
    if (!command.starts_with(words)) continue;
    const size_t job = command.find('/', words.size());
    jobs.insert(command.substr(words.size(), command.find('/', job + 1) - words.size()));
  }
  return jobs;
}

}  // namespace

std::string LockText(const ServingDaemon& daemon) {
  return std::to_string(daemon.pid) + "\n" + std::to_string(daemon.protocol) + "\n";
}

std::optional<ServingDaemon> FindServing(const std::string& state_dir) {
  const UniqueFd lock(
      open(LockPath(state_dir).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info;
  if (!lock || fstat(lock.get(), &info) != 0) return std::nullopt;
  // In /var/tmp somebody else may have been there first, and have written any pid.
  if (!S_ISREG(info.st_mode) || info.st_uid != geteuid()) return std::nullopt;
  if (flock(lock.get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return std::nullopt;
  std::array<char, 64> buffer;
  const ssize_t n = pread(lock.get(), buffer.data(), buffer.size(), 0);
  const std::string_view text(buffer.data(), n > 0 ? static_cast<size_t>(n) : 0);
  const size_t end = text.find('\n');
  const auto pid = ParseNumber<pid_t>(text.substr(0, end), 0);
  if (end == std::string_view::npos || pid <= 1) return std::nullopt;  // it has just been started
  const std::string_view rest = text.substr(end + 1);
  return ServingDaemon{pid, ParseNumber(rest.substr(0, rest.find('\n')), kFirstProtocol)};
}

absl::Status ReplaceOtherProtocol(const std::string& state_dir, const facts::ProcReader& proc) {
  const auto serving = FindServing(state_dir);
  if (!serving || serving->protocol == kProtocol) return absl::OkStatus();
  const std::string daemon = "the musterd of " + state_dir + " (pid " +
                             std::to_string(serving->pid) + ") speaks protocol " +
                             std::to_string(serving->protocol) + ", this one " +
                             std::to_string(kProtocol);
  const auto jobs = JobsWithRanks(state_dir, proc);
  if (!jobs.empty()) {
    std::string names;
    for (const std::string& job : jobs) names += (names.empty() ? "" : ", ") + job;
    return absl::FailedPreconditionError(
        daemon + ", and ranks run under it (controller/job " + names +
        "): stop them with the muster that started them, or wait for their end");
  }
  if (!HasLockOpen(serving->pid, state_dir)) {
    return absl::FailedPreconditionError(
        daemon + ", and is no process of this host: end it where it runs (another container or " +
        "host with the same folder), or set MUSTER_STATE to a folder of this host's own");
  }
  kill(serving->pid, SIGTERM);
  const auto deadline = std::chrono::steady_clock::now() + kEndLimit;
  for (auto left = FindServing(state_dir); left && left->pid == serving->pid;
       left = FindServing(state_dir)) {
    if (std::chrono::steady_clock::now() >= deadline) {
      return absl::FailedPreconditionError(daemon + ", and does not end: kill -9 " +
                                           std::to_string(serving->pid));
    }
    std::this_thread::sleep_for(kPoll);
  }
  return absl::OkStatus();
}

}  // namespace muster::worker
