#pragma once

#include <absl/status/status.h>
#include <sys/types.h>

#include <optional>
#include <string>

#include "worker/facts/proc_reader.h"

// The daemon that serves a state folder, seen by a bridge of maybe another build.

namespace muster::worker {

// What a daemon's `lock` file says of it.
struct ServingDaemon {
  pid_t pid = 0;
  unsigned protocol = 0;
};
// The text of that file.
std::string LockText(const ServingDaemon& daemon);
// Who serves the folder now; nobody: no file of ours, or nobody holds its lock. A daemon that does
// not say its protocol has the first one.
std::optional<ServingDaemon> FindServing(const std::string& state_dir);

// Whether the daemon that serves the folder, if any, is a process of this host and of its network:
// one of an earlier container or namespace with the same folder would run its ranks elsewhere.
// FailedPrecondition says whose it is and what helps.
absl::Status CheckServesHere(const std::string& state_dir);

// Makes room for a daemon of this build: one of the same protocol stays and is used, one of another
// is ended, if no rank lives under it; it is stopped while that is looked at, so that none can
// begin meanwhile. FailedPrecondition names the jobs of those that do, or says why it can't be
// ended: no process of this host, another user's.
absl::Status ReplaceOtherProtocol(const std::string& state_dir, const facts::ProcReader& proc);

}  // namespace muster::worker
