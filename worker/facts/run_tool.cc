#include "worker/facts/run_tool.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "common/unique_fd.h"
#include "worker/shim/program_path.h"

namespace muster::facts {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;
constexpr size_t kMaxOutput = 1 << 20;

std::string FindProgram(const std::string& name, const Environment& environment) {
  std::string path = ValueOf(environment, "PATH");
  if (path.empty()) path = shim::kDefaultPath;
  for (const std::string& candidate : shim::ProgramCandidates(name, path)) {
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

struct Pipe {
  UniqueFd reader;
  UniqueFd writer;
};

bool Open(Pipe& out) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return false;
  out.reader.reset(fds[0]);
  out.writer.reset(fds[1]);
  fcntl(fds[0], F_SETFL, O_NONBLOCK);
  return true;
}

int Spawn(const std::string& program, std::vector<std::string>& words,
          const Environment& environment, int out, int err, pid_t& pid) {
  std::vector<std::string> variables;
  variables.reserve(environment.size());
  for (const auto& [name, value] : environment) {
    variables.push_back(name);
    variables.back().append("=").append(value);
  }
  std::vector<char*> argv;
  std::vector<char*> envp;
  argv.reserve(words.size() + 1);
  envp.reserve(variables.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  for (std::string& variable : variables) envp.push_back(variable.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, 1);
  posix_spawn_file_actions_adddup2(&actions, err, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A group of its own, so that its children can be ended with it.
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  const int error =
      posix_spawn(&pid, program.c_str(), &actions, &attributes, argv.data(), envp.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

// False once the other end is closed.
bool Drain(int fd, std::string& text) {
  char buffer[16384];
  while (true) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    if (n == 0) return false;
    text.append(buffer, std::min(static_cast<size_t>(n), kMaxOutput - text.size()));
  }
}

// False at the deadline.
bool ReadAll(Pipe& out, Pipe& err, TimePoint deadline, ToolOutput& output) {
  std::array<pollfd, 2> fds = {pollfd{out.reader.get(), POLLIN, 0},
                               pollfd{err.reader.get(), POLLIN, 0}};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    if (poll(fds.data(), fds.size(), static_cast<int>(std::min<int64_t>(left.count(), 60'000))) < 0)
      continue;
    if (fds[0].revents != 0 && !Drain(fds[0].fd, output.out)) fds[0].fd = -1;
    if (fds[1].revents != 0 && !Drain(fds[1].fd, output.err)) fds[1].fd = -1;
  }
  return true;
}

// Waits for a process that has closed its output, or has been killed. False at the deadline: a
// process in an endless system call does not even die.
bool Wait(pid_t pid, TimePoint deadline, int& status) {
  while (true) {
    const pid_t got = waitpid(pid, &status, WNOHANG);
    if (got == pid) return true;
    if (got < 0 && errno != EINTR) return false;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    usleep(1000);
  }
}

}  // namespace

std::string ValueOf(const Environment& environment, const std::string& name) {
  for (const auto& [key, value] : environment) {
    if (key == name) return value;
  }
  return "";
}

ToolOutput RunTool(std::vector<std::string> argv, const Environment& environment,
                   TimePoint deadline) {
  ToolOutput output;
  const std::string program = FindProgram(argv.front(), environment);
  if (program.empty()) {
    output.found = false;
    output.failure = argv.front() + " was not found";
    return output;
  }
  Pipe out;
  Pipe err;
  if (!Open(out) || !Open(err)) {
    output.failure = std::string("pipe: ") + std::strerror(errno);
    return output;
  }
  pid_t pid = 0;
  if (const int error = Spawn(program, argv, environment, out.writer.get(), err.writer.get(), pid);
      error != 0) {
    output.failure = "start " + program + ": " + std::strerror(error);
    return output;
  }
  out.writer.reset();
  err.writer.reset();
  int status = 0;
  if (ReadAll(out, err, deadline, output) && Wait(pid, deadline, status)) {
    output.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return output;
  }
  kill(-pid, SIGKILL);
  output.failure = "no answer within the time limit";
  // The usual case: dead at once. Else init takes it when we end.
  Wait(pid, std::chrono::steady_clock::now() + std::chrono::milliseconds(100), status);
  return output;
}

}  // namespace muster::facts
