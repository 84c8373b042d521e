#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <chrono>
#include <string>

#include "common/unique_fd.h"
#include "controller/nodes/stop_signal.h"

namespace muster::nodes {

// A musterd of this machine that stands for one host name, found by its Unix socket and started
// when none runs. One thread.
class LocalWorker {
 public:
  struct Options {
    std::string host;          // its --name
    std::string musterd;       // program; empty: `musterd` beside this program
    std::string state_parent;  // empty: $MUSTER_STATE or /var/tmp/muster-<uid>
    std::chrono::milliseconds start_timeout{10'000};
  };
  explicit LocalWorker(Options options);

  // A connection to the daemon's socket; starts the daemon first if nobody answers there. The error
  // says what to do.
  absl::StatusOr<UniqueFd> Dial(const StopSignal& stop);

  // `<state parent>/<host>/musterd.sock`.
  const std::string& socket_path() const { return socket_path_; }

 private:
  absl::StatusOr<UniqueFd> StartAndDial(const StopSignal& stop);
  absl::StatusOr<pid_t> Spawn(int output) const;

  Options options_;
  std::string socket_path_;
};

}  // namespace muster::nodes
