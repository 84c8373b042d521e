#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "common/unique_fd.h"

// The musterd of this machine that stands for one host: found by its Unix socket, started when none
// runs. Used by the controller (transport=local) and by `musterd bridge`.

namespace muster {

struct LocalDaemon {
  std::string name;                                 // its --name; see NodeName
  std::string state_dir;                            // its folder; the socket is musterd.sock in it
  std::string program;                              // path of musterd
  uint32_t idle_exit_s = 0;                         // of a daemon that is started here; 0: never
  std::chrono::milliseconds start_timeout{10'000};  // from its start to its socket
};

// What musterd takes as a name, for a host as a hostfile has it: at most 64 of A-Z a-z 0-9 . _ -,
// not beginning with a dot.
std::string NodeName(std::string host);

std::string SocketPath(const std::string& state_dir);

// Sleeps; true if the caller is to give up.
using StopAwareSleep = std::function<bool(std::chrono::milliseconds)>;

// A connection to the daemon's socket; starts the daemon first if nobody answers there. Cancelled
// when `sleep` says so. The error has the daemon's own words when it ended, or says where its log
// is.
absl::StatusOr<UniqueFd> ConnectOrStart(const LocalDaemon& daemon, const StopAwareSleep& sleep);

}  // namespace muster
