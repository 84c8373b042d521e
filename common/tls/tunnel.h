#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "common/reactor.h"
#include "common/tls/certificate.h"
#include "common/tls/credentials.h"
#include "common/tls/openssl.h"
#include "common/unique_fd.h"

namespace muster::tls {

// One TLS connection: the handshake, the check of the peer, then bytes between the network and one
// end of a socket pair, until either side ends. Reactor thread only; lives until `ended`.
class Tunnel {
 public:
  enum class Side { kClient, kServer };
  struct Options {
    Side side;
    Identity expected;                       // who the peer must be
    std::chrono::milliseconds limit;         // from now to a peer that is accepted on both sides
    std::chrono::milliseconds flush{5'000};  // for the last bytes, once one side has ended
  };
  struct Handlers {
    // The peer is accepted: the other end of the pair, non-blocking. Or why not. Once.
    std::function<void(absl::StatusOr<UniqueFd>)> ready;
    // The connection is over and closed; why, if it was `ready` before. The last call: the tunnel
    // may be destroyed from a posted task.
    std::function<void(const absl::Status& why)> ended;
  };

  // `socket` is non-blocking. `loaded` is kept while the tunnel lives.
  Tunnel(Reactor& reactor, UniqueFd socket, std::shared_ptr<const Credentials::Loaded> loaded,
         Options options, Handlers handlers);
  ~Tunnel();
  Tunnel(const Tunnel&) = delete;
  Tunnel& operator=(const Tunnel&) = delete;

  // Begins. The handlers may be called from within.
  void Start();
  // Gives up; `ready` or `ended` say why.
  void Abort(const absl::Status& why);
  bool open() const { return state_ == State::kOpen; }

 private:
  enum class State { kHandshake, kVerdict, kOpen, kLingering, kEnded };
  // One direction: what was read and not yet written.
  struct Lane {
    std::array<char, 16 << 10> bytes;
    size_t begin = 0;
    size_t end = 0;
    bool empty() const { return begin == end; }
  };

  void Step();
  void Shake();
  void CheckAndOpen();
  void AwaitVerdict();
  void Open();
  // Moves what can be moved, a bounded amount; true if there may be more at once.
  bool MoveOut();
  bool MoveIn();
  void Pump();
  void Wait();
  // Handles the result of a TLS call that did not succeed: false if it only has to wait.
  bool Failed(int result);
  void End(const absl::Status& why);
  // After a refusal: takes what still comes, or the reset that closing would send could overtake
  // the reason.
  void Linger();
  void Bury(const absl::Status& why);

  Reactor& reactor_;
  const UniqueFd socket_;
  const std::shared_ptr<const Credentials::Loaded> loaded_;
  const Options options_;
  const Handlers handlers_;
  SslPtr ssl_;
  State state_ = State::kHandshake;
  UniqueFd plain_;  // our end of the pair
  Lane out_;        // plain to TLS
  Lane in_;         // TLS to plain
  bool tls_wants_write_ = false;
  bool plain_ended_ = false;
  bool tls_ended_ = false;
  absl::Status why_;  // with tls_ended_
  Reactor::TimerId timer_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for posted steps
  bool step_posted_ = false;
};

}  // namespace muster::tls
