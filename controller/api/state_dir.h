#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "common/unique_fd.h"

// The folder that holds a controller's state: its socket, lock, database and log.

namespace muster::api {

// Where this user's controller keeps its state: `$MUSTER_STATE/controller` if that is set, else
// `$XDG_STATE_HOME/muster` if that is set and on a local file system, else
// `/var/tmp/muster-<uid>/controller`. Makes nothing.
std::string DefaultStateDir();

// `<state dir>/controller.sock`.
std::string SocketPath(const std::string& state_dir);

// The right to be the one controller of a state folder, for as long as it lives. Taken before the
// database is opened. Movable; released on destruction and when the process dies.
class StateLock {
 public:
  // Makes the folder (mode 0700) if needed. FailedPrecondition: another controller holds it (its
  // pid is named), or the folder belongs to somebody else or is open to others. One that holds it
  // and does not serve is about to end, or only looks: it is waited for, at most `wait`.
  static absl::StatusOr<StateLock> Acquire(
      const std::string& state_dir, std::chrono::milliseconds wait = std::chrono::milliseconds(0));

  // The pid of the controller that holds it, 0 if that is not said; nothing when nobody does.
  static std::optional<pid_t> Holder(const std::string& state_dir);

  const std::string& state_dir() const { return state_dir_; }

 private:
  StateLock(std::string state_dir, UniqueFd fd);

  std::string state_dir_;
  UniqueFd fd_;
};

}  // namespace muster::api
