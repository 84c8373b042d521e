#include "worker/daemon/other_daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <set>
#include <string_view>
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
  const UniqueFd lock(open((state_dir + "/lock").c_str(), O_RDONLY | O_CLOEXEC));
  if (!lock) return std::nullopt;
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
