#include "common/local_daemon.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "common/spawn.h"
#include "common/status.h"
#include "common/unix_socket.h"

namespace muster {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPoll{20};
// A start can fail because another one is under way; that one needs a moment until it listens.
constexpr std::chrono::milliseconds kOthersStart{1'000};
constexpr size_t kOutputShown = 2000;
constexpr size_t kMaxNodeName = 63;

// What the daemon said before it gave up: the last part, on one line.
std::string Output(int fd) {
  const off_t size = lseek(fd, 0, SEEK_END);
  const off_t begin = size > static_cast<off_t>(kOutputShown) ? size - kOutputShown : 0;
  std::string text(kOutputShown, '\0');
  const ssize_t n = pread(fd, text.data(), text.size(), begin);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::vector<std::string> CommandLine(const LocalDaemon& daemon) {
  std::vector<std::string> words = {daemon.program, "--name",         daemon.name,
                                    "--state-dir",  daemon.state_dir, "--background"};
  if (daemon.idle_exit_s > 0) {
    words.insert(words.end(), {"--idle-exit", std::to_string(daemon.idle_exit_s)});
  }
  return words;
}

absl::StatusOr<UniqueFd> StartAndConnect(const LocalDaemon& daemon, const StopAwareSleep& sleep) {
  const std::string what = "start a worker for host " + daemon.name;
  const UniqueFd output(memfd_create("musterd-output", MFD_CLOEXEC));
  if (!output) return PosixError("memfd_create");
  auto started = Spawn({.words = CommandLine(daemon),
                        .out = output.get(),
                        .err = output.get(),
                        .group = SpawnOptions::Group::kOwnSession});
  if (!started.ok()) return Annotate(started.status(), what);
  const pid_t pid = *started;
  auto deadline = steady_clock::now() + daemon.start_timeout;
  // With --background the process that we started ends as soon as the daemon is under way.
  std::optional<int> ended;
  absl::StatusOr<UniqueFd> fd = absl::UnavailableError("");
  bool stopped = false;
  while (true) {
    int wait_status = 0;
    if (!ended && waitpid(pid, &wait_status, WNOHANG) == pid) {
      ended = wait_status;
      if (wait_status != 0) deadline = std::min(deadline, steady_clock::now() + kOthersStart);
    }
    fd = ConnectUnix(SocketPath(daemon.state_dir));
    if (fd.ok() || steady_clock::now() >= deadline) break;
    if ((stopped = sleep(kPoll))) break;
  }
  if (!ended) {
    // It may be about to end, or be the daemon itself; either way it must not stay as a zombie.
    std::thread([pid] { waitpid(pid, nullptr, 0); }).detach();
  }
  if (fd.ok()) return fd;
  if (stopped) return absl::CancelledError("closed");
  if (ended && *ended != 0) {
    return absl::UnavailableError(what + ": " + daemon.program + " " + DescribeWaitStatus(*ended) +
                                  ": " + Output(output.get()));
  }
  return absl::DeadlineExceededError(
      what + ": " + daemon.program + " did not listen on " + SocketPath(daemon.state_dir) +
      " within " + std::to_string(daemon.start_timeout.count()) + " ms; its log is in that folder");
}

}  // namespace

std::string NodeName(std::string host) {
  if (host.size() > kMaxNodeName) host.resize(kMaxNodeName);
  for (char& c : host) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '-') c = '_';
  }
  if (host.empty() || host.front() == '.') host.insert(host.begin(), '_');
  return host;
}

std::string SocketPath(const std::string& state_dir) {
  return state_dir + "/musterd.sock";
}

absl::StatusOr<UniqueFd> ConnectOrStart(const LocalDaemon& daemon, const StopAwareSleep& sleep) {
  absl::StatusOr<UniqueFd> fd = ConnectUnix(SocketPath(daemon.state_dir));
  if (fd.ok() || !(absl::IsNotFound(fd.status()) || absl::IsUnavailable(fd.status()))) return fd;
  return StartAndConnect(daemon, sleep);
}

}  // namespace muster
