#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/reactor.h"
#include "common/unique_fd.h"
#include "worker/shim/shim_status.h"

namespace muster::ranks {

// The daemon's connection to the shim of one rank. Reactor thread only. The callbacks may destroy
// the link.
class ShimLink {
 public:
  struct Callbacks {
    std::function<void(const shim::ShimStatus&)> status;
    // The shim is gone; `last` is the exit record in the rank folder, if there is one. The last
    // call.
    std::function<void(const std::optional<shim::ShimStatus>& last)> gone;
  };

  // Starts `program` (muster-shim) for the rank folder, in its own session, with nothing inherited
  // but its socket. The socket listens before the shim lives, so there is nothing to wait for.
  static absl::StatusOr<std::unique_ptr<ShimLink>> Spawn(Reactor& reactor,
                                                         const std::string& program,
                                                         const std::string& folder,
                                                         Callbacks callbacks);
  // Finds the shim that an earlier daemon started. NotFound if none lives.
  static absl::StatusOr<std::unique_ptr<ShimLink>> Adopt(Reactor& reactor,
                                                         const std::string& folder,
                                                         Callbacks callbacks);
  // The shim lives on.
  ~ShimLink();
  ShimLink(const ShimLink&) = delete;
  ShimLink& operator=(const ShimLink&) = delete;

  void Send(shim::ShimCommand command);
  // The controller has what lies below `offset` of the log.
  void SendAcknowledged(size_t stream, uint64_t offset);

  // 0 until known. For Spawn at once, for Adopt with the first status.
  pid_t shim_pid() const { return shim_pid_; }

 private:
  ShimLink(Reactor& reactor, std::string folder, UniqueFd socket, pid_t shim_pid,
           Callbacks callbacks);
  void Read();
  void SendPacket(const std::string& packet);

  Reactor& reactor_;
  const std::string folder_;
  UniqueFd socket_;
  pid_t shim_pid_;
  Callbacks callbacks_;
};

// The exit record of a rank folder; nothing if there is none or it is damaged.
std::optional<shim::ShimStatus> ReadExitRecord(const std::string& folder);

}  // namespace muster::ranks
