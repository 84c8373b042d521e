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
#include <cstring>
#include <filesystem>
#include <set>
#include <string_view>
#include <thread>

#include "common/for_each_item.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "common/version.h"

namespace muster::worker {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kEndLimit(10);
constexpr std::chrono::milliseconds kPoll(20);
constexpr unsigned kFirstProtocol = 1;
constexpr char kNotHere[] =
    "is no process of this host: end it where it runs (another container or host with the same "
    "folder), or set MUSTER_STATE to a folder of this host's own";

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
  bool has = false;
  ForEachItem("/proc/" + std::to_string(pid) + "/fd", [&](const std::filesystem::path& path) {
    struct stat file;
    has = has || (stat(path.c_str(), &file) == 0 && file.st_dev == lock.st_dev &&
                  file.st_ino == lock.st_ino);
  });
  return has;
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

bool StillServes(const ServingDaemon& daemon, const std::string& state_dir) {
  const auto now = FindServing(state_dir);
  return now && now->pid == daemon.pid;
}

// The messages below go on after "the musterd of FOLDER (pid N) ...".
absl::Status RanksRun(const std::set<std::string>& jobs) {
  std::string names;
  for (const std::string& job : jobs) names += (names.empty() ? "" : ", ") + job;
  return absl::FailedPreconditionError(
      ", and ranks run under it (controller/job " + names +
      "): stop them with the muster that started them, or wait for their end");
}

// Gone is as good as signalled.
absl::Status SignalDaemon(pid_t pid, int signal) {
  if (kill(pid, signal) == 0 || errno == ESRCH) return absl::OkStatus();
  return absl::FailedPreconditionError(", and can't be ended (" +
                                       std::string(std::strerror(errno)) + "): kill -9 " +
                                       std::to_string(pid));
}

// Until the process is stopped or has gone; false: not within the limit.
bool AwaitStopped(pid_t pid, const facts::ProcReader& proc, steady_clock::time_point deadline) {
  while (steady_clock::now() < deadline) {
    const auto stat = proc.Stat(pid);
    if (!stat || stat->state == 'T' || stat->IsZombie()) return true;
    std::this_thread::sleep_for(kPoll);
  }
  return false;
}

// A stopped daemon starts no rank. SIGKILL, since one that is continued could take an order before
// a milder signal; all that it has to keep is on the disk.
absl::Status EndIfWithoutRanks(pid_t pid, const std::string& state_dir,
                               const facts::ProcReader& proc) {
  const auto deadline = steady_clock::now() + kEndLimit;
  MUSTER_RETURN_IF_ERROR(SignalDaemon(pid, SIGSTOP));
  const bool stopped = AwaitStopped(pid, proc, deadline);
  const auto jobs = JobsWithRanks(state_dir, proc);
  if (!stopped || !jobs.empty()) {
    (void)SignalDaemon(pid, SIGCONT);
    if (!jobs.empty()) return RanksRun(jobs);
    return absl::FailedPreconditionError(", and does not stop: kill -9 " + std::to_string(pid));
  }
  MUSTER_RETURN_IF_ERROR(SignalDaemon(pid, SIGKILL));
  while (StillServes({.pid = pid}, state_dir)) {
    if (steady_clock::now() >= deadline) {
      return absl::FailedPreconditionError(", and does not end: kill -9 " + std::to_string(pid));
    }
    std::this_thread::sleep_for(kPoll);
  }
  return absl::OkStatus();
}

std::optional<ino_t> NetNamespaceOf(const std::string& process) {
  struct stat info;
  if (stat(("/proc/" + process + "/ns/net").c_str(), &info) != 0) return std::nullopt;
  return info.st_ino;
}

}  // namespace

absl::Status CheckServesHere(const std::string& state_dir) {
  const auto serving = FindServing(state_dir);
  if (!serving) return absl::OkStatus();  // it has just been started
  const std::string pid = std::to_string(serving->pid);
  const std::string daemon = "the musterd of " + state_dir + " (pid " + pid + ") ";
  if (!HasLockOpen(serving->pid, state_dir)) {
    return StillServes(*serving, state_dir) ? absl::FailedPreconditionError(daemon + kNotHere)
                                            : absl::OkStatus();
  }
  const auto theirs = NetNamespaceOf(pid);
  const auto ours = NetNamespaceOf("self");
  if (!theirs || !ours || *theirs == *ours) return absl::OkStatus();
  return absl::FailedPreconditionError(daemon +
                                       "lives in another network namespace, so its ranks would "
                                       "not be on this host: end it (kill " +
                                       pid +
                                       "), or set MUSTER_STATE to a folder of this host's own");
}

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
  if (!HasLockOpen(serving->pid, state_dir)) {
    return StillServes(*serving, state_dir)
               ? absl::FailedPreconditionError(daemon + ", and " + kNotHere)
               : absl::OkStatus();
  }
  const absl::Status ended = EndIfWithoutRanks(serving->pid, state_dir, proc);
  return ended.ok() ? ended : absl::Status(ended.code(), daemon + std::string(ended.message()));
}

}  // namespace muster::worker
