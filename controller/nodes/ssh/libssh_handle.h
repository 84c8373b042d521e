#pragma once

#include <absl/status/statusor.h>
#include <libssh/libssh.h>

#include <functional>
#include <memory>
#include <string>

#include "controller/nodes/limits.h"

// libssh's objects with owners, and its non-blocking calls with limits. An ssh session, with its
// channels, belongs to one thread at a time; it may move from one to another between calls.

namespace muster::nodes::ssh {

struct FreeSession {
  void operator()(ssh_session session) const;  // says goodbye without waiting, closes the socket
};
struct FreeKey {
  void operator()(ssh_key key) const { ssh_key_free(key); }
};
// Before its session.
struct FreeChannel {
  void operator()(ssh_channel channel) const { ssh_channel_free(channel); }
};
using SessionPtr = std::unique_ptr<ssh_session_struct, FreeSession>;
using ChannelPtr = std::unique_ptr<ssh_channel_struct, FreeChannel>;
using KeyPtr = std::unique_ptr<ssh_key_struct, FreeKey>;

// A session that reads no configuration and no known_hosts of its own; non-blocking. The library's
// warnings go to our log at its debug level, from each thread that calls this.
SessionPtr NewSession();

// Repeats `call` while it returns `again`, waiting for the session's socket between. Its last
// result; Cancelled, DeadlineExceeded, Unavailable: the connection is gone.
absl::StatusOr<int> Await(ssh_session session, int again, const Limits& limits,
                          const std::function<int()>& call);

// What libssh has to say, on one line and bounded. "the host closed the connection" for its several
// ways to say that.
std::string LastError(ssh_session session);

}  // namespace muster::nodes::ssh
