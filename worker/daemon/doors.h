#pragma once

#include <absl/status/status.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/lobby.h"
#include "common/reactor.h"
#include "common/tls/credentials.h"
#include "common/tls/pump.h"
#include "common/unique_fd.h"

namespace muster::worker {

// All that musterd listens on, and who gets through to gRPC: on the Unix socket and the loopback
// this user and root, elsewhere the controller of our authority by mutual TLS. gRPC tells nothing
// about a peer, so connections are accepted and judged here. Refusals are logged, a flood of them
// in part. Reactor thread only.
class Doors {
 public:
  // Takes a judged connection: plain bytes, non-blocking. Any thread.
  using Entered = std::function<void(UniqueFd)>;

  // `credentials` is asked for each TLS connection.
  Doors(Reactor& reactor, std::shared_ptr<tls::Credentials> credentials, Entered entered);
  // No connection enters any more; those that stand end.
  ~Doors();

  void OpenPlain(UniqueFd listener);
  void OpenTls(UniqueFd listener);

 private:
  // Any thread.
  void Refused(const std::string& who, const absl::Status& why);
  void LogRefusal(const std::string& text);
  void EnterTls(UniqueFd fd);

  Reactor& reactor_;
  const std::shared_ptr<tls::Credentials> credentials_;
  const Entered entered_;
  LogLimit log_limit_;
  std::vector<std::unique_ptr<Lobby>> lobbies_;
  std::unique_ptr<tls::Pump> pump_;  // once there is a TLS door
};

}  // namespace muster::worker
