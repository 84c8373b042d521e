#include "worker/daemon/bridge.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "common/bridge_marker.h"
#include "common/local_daemon.h"
#include "common/status.h"
#include "common/version.h"
#include "worker/daemon/old_builds.h"
#include "worker/daemon/other_daemon.h"
#include "worker/daemon/pump.h"
#include "worker/daemon/state_dir.h"
#include "worker/facts/proc_reader.h"

namespace muster::worker {
namespace {

// What the daemon said last must not keep a bridge alive whose way out is cut.
constexpr std::chrono::seconds kFlushLimit(5);
// Long enough for the next job of a person who works with the cluster.
constexpr uint32_t kDefaultIdleExit = 600;

std::optional<ino_t> NetNamespaceOf(const std::string& process) {
  struct stat info;
  if (stat(("/proc/" + process + "/ns/net").c_str(), &info) != 0) return std::nullopt;
  return info.st_ino;
}

// A daemon that stayed from an earlier container or namespace with the same folder would run its
// ranks in the wrong network. It says who it is in its lock file.
absl::Status CheckSameNetwork(const std::string& state_dir) {
  const auto serving = FindServing(state_dir);
  if (!serving) return absl::OkStatus();  // it has just been started
  const std::string pid = std::to_string(serving->pid);
  const auto theirs = NetNamespaceOf(pid);
  const auto ours = NetNamespaceOf("self");
  if (!theirs || !ours || *theirs == *ours) return absl::OkStatus();
  return absl::FailedPreconditionError("the musterd of " + state_dir + " (pid " + pid +
                                       ") lives in another network namespace, so its ranks would "
                                       "not be on this host: end it (kill " +
                                       pid +
                                       "), or set MUSTER_STATE to a folder of this host's own");
}

absl::Status WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return PosixError("write to stdout");
    text.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunBridge(const Options& options) {
  signal(SIGPIPE, SIG_IGN);
  std::error_code error;
  LocalDaemon daemon;
  daemon.name = options.name;
  daemon.state_dir = StateDirPath(options.state_dir, options.name);
  daemon.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  daemon.idle_exit_s = options.idle_exit_s > 0 ? options.idle_exit_s : kDefaultIdleExit;
  NoteBuildUse(daemon.program);
  MUSTER_RETURN_IF_ERROR(ReplaceOtherProtocol(daemon.state_dir, facts::ProcReader::Real()));
  MUSTER_ASSIGN_OR_RETURN(const UniqueFd socket,
                          ConnectOrStart(daemon, [](std::chrono::milliseconds pause) {
                            std::this_thread::sleep_for(pause);
                            return false;
                          }));
  MUSTER_RETURN_IF_ERROR(CheckSameNetwork(daemon.state_dir));
  MUSTER_RETURN_IF_ERROR(
      WriteAll(STDOUT_FILENO, BridgeMarkerLine({.protocol = kProtocol, .version = kVersion})));
  return Pump(STDIN_FILENO, STDOUT_FILENO, socket.get(), kFlushLimit);
}

}  // namespace muster::worker
