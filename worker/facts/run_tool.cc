#include "worker/facts/run_tool.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "common/spawn.h"
#include "common/unique_fd.h"
#include "worker/shim/program_path.h"

namespace muster::facts {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;
constexpr size_t kMaxOutput = 1 << 20;
constexpr std::chrono::milliseconds kLook(10);  // how often to see whether the program has ended

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

// Reads what is there, a bounded amount: one that writes without end must not hold us. False once
// the other end is closed.
bool Drain(int fd, std::string& text) {
  char buffer[16384];
  for (size_t taken = 0; taken < kMaxOutput;) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    if (n == 0) return false;
    taken += static_cast<size_t>(n);
    text.append(buffer, std::min(static_cast<size_t>(n), kMaxOutput - text.size()));
  }
  return true;
}

// Reads until the program has ended; its children may keep its output open. False at the deadline:
// a process in an endless system call does not even die.
bool ReadToEnd(pid_t pid, Pipe& out, Pipe& err, TimePoint deadline, int& status,
               ToolOutput& output) {
  std::array<pollfd, 2> fds = {pollfd{out.reader.get(), POLLIN, 0},
                               pollfd{err.reader.get(), POLLIN, 0}};
  const std::array<std::string*, 2> texts = {&output.out, &output.err};
  while (true) {
    const pid_t ended = waitpid(pid, &status, WNOHANG);
    for (size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].fd >= 0 && !Drain(fds[i].fd, *texts[i])) fds[i].fd = -1;
    }
    if (ended == pid) return true;
    if (ended < 0 && errno != EINTR) return false;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    const bool closed = fds[0].fd < 0 && fds[1].fd < 0;  // about to end
    poll(fds.data(), fds.size(), closed ? 1 : static_cast<int>(kLook.count()));
  }
}

// After a kill: dead at once in the usual case. Else init takes it when we end.
void Reap(pid_t pid) {
  for (int i = 0; i < 100 && waitpid(pid, nullptr, WNOHANG) == 0; ++i) usleep(1000);
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
  const auto pid = Spawn({.words = std::move(argv),
                          .program = program,
                          .environment = JoinEnvironment(environment),
                          .out = out.writer.get(),
                          .err = err.writer.get()});
  if (!pid.ok()) {
    output.failure = "start " + std::string(pid.status().message());
    return output;
  }
  out.writer.reset();
  err.writer.reset();
  int status = 0;
  if (ReadToEnd(*pid, out, err, deadline, status, output)) {
    output.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return output;
  }
  kill(*pid, SIGKILL);
  output.failure = "no answer within the time limit";
  Reap(*pid);
  return output;
}

}  // namespace muster::facts
