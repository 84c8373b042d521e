#include "controller/nodes/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <thread>
#include <utility>

#include "common/spawn.h"
#include "common/status.h"

namespace muster::nodes {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTermGrace{1'000};
constexpr std::chrono::milliseconds kPoll{5};

}  // namespace

absl::StatusOr<StartedProcess> ChildProcess::Start(const std::vector<std::string>& words) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    return PosixError("socketpair");
  }
  UniqueFd ours(sockets[0]);
  const UniqueFd theirs(sockets[1]);
  int errors[2];
  if (pipe2(errors, O_CLOEXEC) != 0) return PosixError("pipe");
  UniqueFd error_reader(errors[0]);
  UniqueFd error_writer(errors[1]);
  for (const int fd : {ours.get(), error_reader.get()}) {
    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) return PosixError("O_NONBLOCK");
  }
  MUSTER_ASSIGN_OR_RETURN(const pid_t pid, Spawn({.words = words,
                                                  .in = theirs.get(),
                                                  .out = theirs.get(),
                                                  .err = error_writer.get(),
                                                  .group = SpawnOptions::Group::kOwnSession}));
  const std::string name = std::filesystem::path(words[0]).filename().string();
  return StartedProcess{
      std::make_unique<ChildProcess>(name, pid, std::move(error_reader), std::move(error_writer)),
      std::move(ours)};
}

ChildProcess::~ChildProcess() {
  if (!WaitEnd(std::chrono::milliseconds(0))) {
    kill(-pid_, SIGTERM);
    WaitEnd(kTermGrace);
  }
  // Also what its leader has left behind; the group's number is ours until the leader is reaped.
  kill(-pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void ChildProcess::ReadErrors() {
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t n = read(errors_.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    error_text_.Append({buffer.data(), static_cast<size_t>(n)});
  }
}

void ChildProcess::DropErrors() {
  // The flag belongs to the pipe's end, which the program shares with us.
  fcntl(error_writer_.get(), F_SETFL, O_NONBLOCK);
  error_writer_.reset();
}

std::optional<int> ChildProcess::WaitEnd(std::chrono::milliseconds limit) {
  const auto deadline = steady_clock::now() + limit;
  while (!wait_status_) {
    siginfo_t info{};
    // WNOWAIT: it stays a zombie, so that its process group can still be ended.
    if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == pid_) {
      wait_status_ = info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0)
                                                : W_EXITCODE(0, info.si_status);
      break;
    }
    if (steady_clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(kPoll);
  }
  return wait_status_;
}

}  // namespace muster::nodes
