#include "controller/cli/background.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "common/spawn.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "controller/api/connect.h"

namespace muster::cli {
namespace {

constexpr auto kStartTimeout = std::chrono::seconds(20);
constexpr auto kPollInterval = std::chrono::milliseconds(20);

// mkdir -p with mode 0700 for what is missing. The folder must be ours: it may lie below a folder
// that all can write.
absl::Status MakeFolder(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      const absl::Status why = PosixError("can't make the state folder: mkdir " + part);
      return absl::Status(why.code(), std::string(why.message()) +
                                          "; set MUSTER_STATE to a folder that you can write");
    }
    if (slash == std::string::npos) break;
  }
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return PosixError("stat " + path);
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid()) {
    return absl::FailedPreconditionError(
        path + " is not a folder of yours; remove it, or set MUSTER_STATE");
  }
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> TakeStartLock(const std::string& state_dir) {
  const std::string path = state_dir + "/start.lock";
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return PosixError("open " + path);
  while (flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return PosixError("flock " + path);
  }
  return fd;
}

absl::StatusOr<pid_t> StartController(const std::string& state_dir, const std::string& log) {
  const UniqueFd output(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!output) return PosixError("open " + log);
  const auto pid = Spawn({.words = {"muster", "serve", "--state-dir", state_dir},
                          .program = "/proc/self/exe",
                          .folder = "/",
                          .out = output.get(),
                          .err = output.get(),
                          .close_others = true,
                          .group = SpawnOptions::Group::kOwnSession});
  return pid.ok() ? pid : Annotate(pid.status(), "start a controller (muster serve)");
}

// What the log has got since `from`, at most the last 2 KiB.
std::string LogSince(const std::string& path, std::streamoff from) {
  std::ifstream in(path, std::ios::binary);
  in.seekg(0, std::ios::end);
  in.seekg(std::max<std::streamoff>(from, in.tellg() - std::streamoff{2048}));
  std::ostringstream out;
  out << in.rdbuf();
  std::string text = out.str();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::streamoff FileSize(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? info.st_size : 0;
}

}  // namespace

absl::Status StartController(const std::string& state_dir) {
  MUSTER_RETURN_IF_ERROR(MakeFolder(state_dir));
  MUSTER_ASSIGN_OR_RETURN(const UniqueFd lock, TakeStartLock(state_dir));
  if (api::Connect(state_dir).ok()) return absl::OkStatus();

  const std::string log = state_dir + "/controller.log";
  const std::streamoff log_begin = FileSize(log);
  MUSTER_ASSIGN_OR_RETURN(const pid_t pid, StartController(state_dir, log));
  const auto deadline = std::chrono::steady_clock::now() + kStartTimeout;
  while (std::chrono::steady_clock::now() < deadline) {
    if (api::Connect(state_dir).ok()) return absl::OkStatus();
    if (waitpid(pid, nullptr, WNOHANG) == pid) {
      // It may have lost against one that was started by other means.
      if (api::Connect(state_dir).ok()) return absl::OkStatus();
      return absl::InternalError(
          fmt::format("the controller ended at once; {} says:\n{}", log, LogSince(log, log_begin)));
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  return absl::DeadlineExceededError(
      fmt::format("the controller (pid {}) does not answer after {} s; see {}", pid,
                  kStartTimeout.count(), log));
}

}  // namespace muster::cli
