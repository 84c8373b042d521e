#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <string>

#include "common/unique_fd.h"

// Unix stream sockets that only one user may reach: what controller and worker listen on. Paths of
// any length work (the kernel's limit of 107 bytes is met through /proc/self/fd). All descriptors
// are non-blocking and close-on-exec. Any thread.

namespace muster {

// Listens at `path` with mode 0600. A socket file that nobody answers on is replaced; AlreadyExists
// when somebody does. Two callers at once are kept apart by a lock that they hold on the folder,
// not by this function.
absl::StatusOr<UniqueFd> ListenUnix(const std::string& path);

// Does the other side of an accepted connection run as `uid`? PermissionDenied names uid and pid of
// somebody else.
absl::Status CheckUnixPeer(int fd, uid_t uid);

// A connection to the listener at `path`, which must run as this process's user or root: in
// /var/tmp somebody else may have been there first. NotFound: no such file; Unavailable: nobody
// listens there any more; PermissionDenied: somebody else does.
absl::StatusOr<UniqueFd> ConnectUnix(const std::string& path);

}  // namespace muster
