#include "controller/nodes/local_worker.h"

#include <absl/strings/ascii.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "common/status.h"
#include "common/unix_socket.h"

namespace muster::nodes {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPoll{20};
constexpr size_t kOutputShown = 2000;
constexpr size_t kMaxNodeName = 63;

std::string DefaultStateParent() {
  const char* parent = std::getenv("MUSTER_STATE");
  if (parent != nullptr && *parent != '\0') return parent;
  return "/var/tmp/muster-" + std::to_string(getuid());
}

std::string ProgramBeside(const std::string& name) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? name : (self.parent_path() / name).string();
}

// What musterd takes as a name: at most 64 of A-Z a-z 0-9 . _ -, not beginning with a dot.
std::string NodeName(std::string host) {
  if (host.size() > kMaxNodeName) host.resize(kMaxNodeName);
  for (char& c : host) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '_';
  }
  if (host.empty() || host.front() == '.') host.insert(host.begin(), '_');
  return host;
}

// The environment with MUSTER_STATE set.
std::vector<std::string> Environment(const std::string& state_parent) {
  std::vector<std::string> out = {"MUSTER_STATE=" + state_parent};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::string_view(*entry).rfind("MUSTER_STATE=", 0) != 0) out.emplace_back(*entry);
  }
  return out;
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  out.reserve(words.size() + 1);
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

// What the daemon said before it gave up: the last part, on one line.
std::string Output(int fd) {
  const off_t size = lseek(fd, 0, SEEK_END);
  const off_t begin = size > static_cast<off_t>(kOutputShown) ? size - kOutputShown : 0;
  std::string text(kOutputShown, '\0');
  const ssize_t n = pread(fd, text.data(), text.size(), begin);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

std::string DescribeEnd(int wait_status) {
  return WIFSIGNALED(wait_status) ? "was ended by signal " + std::to_string(WTERMSIG(wait_status))
                                  : "exited with " + std::to_string(WEXITSTATUS(wait_status));
}

}  // namespace

LocalWorker::LocalWorker(Options options) : options_(std::move(options)) {
  if (options_.musterd.empty()) options_.musterd = ProgramBeside("musterd");
  if (options_.state_parent.empty()) options_.state_parent = DefaultStateParent();
  socket_path_ = options_.state_parent + "/" + NodeName(options_.host) + "/musterd.sock";
}

absl::StatusOr<UniqueFd> LocalWorker::Dial(const StopSignal& stop) {
  absl::StatusOr<UniqueFd> fd = ConnectUnix(socket_path_);
  if (fd.ok() || !(absl::IsNotFound(fd.status()) || absl::IsUnavailable(fd.status()))) return fd;
  return StartAndDial(stop);
}

absl::StatusOr<pid_t> LocalWorker::Spawn(int output) const {
  std::vector<std::string> words = {options_.musterd, "--name", NodeName(options_.host),
                                    "--background"};
  std::vector<std::string> environment = Environment(options_.state_parent);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  // A session of its own: Ctrl-C at our terminal is not for the daemon.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, options_.musterd.c_str(), &actions, &attributes,
                                Pointers(words).data(), Pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return Annotate(PosixError(options_.musterd, error),
                    "start a worker for host " + options_.host);
  }
  return pid;
}

absl::StatusOr<UniqueFd> LocalWorker::StartAndDial(const StopSignal& stop) {
  const UniqueFd output(memfd_create("musterd-output", MFD_CLOEXEC));
  if (!output) return PosixError("memfd_create");
  MUSTER_ASSIGN_OR_RETURN(const pid_t pid, Spawn(output.get()));
  const auto deadline = steady_clock::now() + options_.start_timeout;
  const std::string what = "start a worker for host " + options_.host + ": " + options_.musterd;
  // With --background the process that we started ends as soon as the daemon is under way.
  bool reaped = false;
  int wait_status = 0;
  absl::StatusOr<UniqueFd> fd = absl::UnavailableError("");
  while (true) {
    reaped = reaped || waitpid(pid, &wait_status, WNOHANG) == pid;
    fd = ConnectUnix(socket_path_);  // after a failed start too: somebody else may have started one
    const bool failed = reaped && wait_status != 0;
    if (fd.ok() || failed || steady_clock::now() >= deadline || stop.WaitFor(kPoll)) break;
  }
  if (!reaped) {
    // It may be about to end, or be the daemon itself; either way it must not stay as a zombie.
    std::thread([pid] { waitpid(pid, nullptr, 0); }).detach();
  }
  if (fd.ok()) return fd;
  if (stop.is_set()) return absl::CancelledError("closed");
  if (reaped && wait_status != 0) {
    return absl::UnavailableError(what + " " + DescribeEnd(wait_status) + ": " +
                                  Output(output.get()));
  }
  return absl::DeadlineExceededError(what + " did not listen on " + socket_path_ + " within " +
                                     std::to_string(options_.start_timeout.count()) +
                                     " ms; its log is in that folder");
}

}  // namespace muster::nodes
