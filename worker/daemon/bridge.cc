#include "worker/daemon/bridge.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
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
  MUSTER_RETURN_IF_ERROR(CheckServesHere(daemon.state_dir));
  MUSTER_RETURN_IF_ERROR(
      WriteAll(STDOUT_FILENO, BridgeMarkerLine({.protocol = kProtocol, .version = kVersion})));
  return Pump(STDIN_FILENO, STDOUT_FILENO, socket.get(), kFlushLimit);
}

}  // namespace muster::worker
