#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "common/unique_fd.h"

namespace muster::worker {

// The daemon's folder: made with mode 0700, owned by this user, and locked for one daemon.
struct StateDir {
  std::string path;  // absolute
  UniqueFd lock;     // held as long as the daemon lives
};

// --state-dir as given, else $MUSTER_STATE/<name>, else /var/tmp/muster-<uid>/<name>.
std::string StateDirPath(const std::string& given, const std::string& name);

// Makes (parents too), checks and locks. The error says who holds the lock, or what is wrong with
// the folder.
absl::StatusOr<StateDir> OpenStateDir(const std::string& path);

}  // namespace muster::worker
