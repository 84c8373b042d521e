#include "common/tls/tunnel.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/status.h"
#include "common/tls/handshake.h"

namespace muster::tls {
namespace {

constexpr int kRounds = 16;  // a turn moves at most so many buffers, then others have theirs
constexpr int kUnconfirmedMs = 15'000;
constexpr std::chrono::milliseconds kLingering(1'000);

int64_t NowSeconds(const Reactor& reactor) {
  return reactor.clock().RealtimeNs() / 1'000'000'000;
}

bool WouldBlock() {
  return errno == EAGAIN || errno == EINTR;
}

}  // namespace

Tunnel::Tunnel(Reactor& reactor, UniqueFd socket, std::shared_ptr<const Credentials::Loaded> loaded,
               Options options, Handlers handlers)
    : reactor_(reactor),
      socket_(std::move(socket)),
      loaded_(std::move(loaded)),
      options_(std::move(options)),
      handlers_(std::move(handlers)) {}

Tunnel::~Tunnel() {
  *alive_ = false;
  if (state_ == State::kEnded) return;
  reactor_.Cancel(timer_);
  reactor_.Unwatch(socket_.get());
  if (plain_) reactor_.Unwatch(plain_.get());
}

void Tunnel::Start() {
  // What is sent and never confirmed ends the connection: while it waits, nobody looks whether the
  // plain side has gone. No effect on Unix sockets.
  const int patience_ms = kUnconfirmedMs;
  setsockopt(socket_.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &patience_ms, sizeof patience_ms);
  reactor_.Watch(socket_.get(), [this] { Step(); });
  timer_ = reactor_.After(options_.limit, [this] {
    End(absl::DeadlineExceededError("no end of the TLS handshake within " +
                                    std::to_string(options_.limit.count()) + " ms"));
  });
  ssl_.reset(SSL_new(loaded_->context.get()));
  if (!ssl_ || SSL_set_fd(ssl_.get(), socket_.get()) != 1) {
    End(OpenSslError("TLS"));
    return;
  }
  if (options_.side == Side::kClient) {
    SSL_set_connect_state(ssl_.get());
  } else {
    SSL_set_accept_state(ssl_.get());
  }
  Step();
}

void Tunnel::Abort(const absl::Status& why) {
  if (state_ == State::kEnded) return;
  if (state_ != State::kLingering) End(why);
  if (state_ == State::kLingering) Bury(why_);
}

void Tunnel::Step() {
  tls_wants_write_ = false;
  if (state_ == State::kHandshake) Shake();
  if (state_ == State::kVerdict) AwaitVerdict();
  if (state_ == State::kOpen) Pump();
  if (state_ == State::kLingering) {
    Linger();
  } else if (state_ != State::kEnded) {
    Wait();
  }
}

bool Tunnel::Failed(int result) {
  const int system_error = errno;
  const int kind = SSL_get_error(ssl_.get(), result);
  if (kind == SSL_ERROR_WANT_READ) return false;
  if (kind == SSL_ERROR_WANT_WRITE) {
    tls_wants_write_ = true;
    return false;
  }
  why_ = ExplainFailure(ssl_.get(), kind, system_error);
  tls_ended_ = true;
  return true;
}

void Tunnel::Shake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) {
    CheckAndOpen();
  } else if (Failed(result)) {
    End(why_);
  }
}

void Tunnel::CheckAndOpen() {
  const int64_t now_s = NowSeconds(reactor_);
  const auto peer = CheckPeer(ssl_.get(), options_.expected, now_s);
  if (peer.ok()) {
    if (options_.side == Side::kServer) {
      Open();
    } else {
      state_ = State::kVerdict;
    }
    return;
  }
  if (options_.side == Side::kServer) {
    const std::string frame = RefusalFrame(peer.status(), now_s);
    SSL_write(ssl_.get(), frame.data(), static_cast<int>(frame.size()));
  }
  End(peer.status());
}

// In TLS 1.3 a client is ready before the server has looked at its certificate. The server's first
// bytes tell: HTTP/2's SETTINGS, or a refusal, or an alert.
void Tunnel::AwaitVerdict() {
  ERR_clear_error();
  std::array<char, kLargestRefusal> bytes;
  const int n = SSL_peek(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
  if (n <= 0) {
    if (Failed(n)) End(why_);
    return;
  }
  const std::string_view seen(bytes.data(), static_cast<size_t>(n));
  if (seen.size() < kFrameHeader) return;
  const size_t refusal = RefusalLength(seen);
  if (refusal == 0) {
    Open();
  } else if (seen.size() >= refusal) {
    End(ReadRefusal(seen.substr(0, refusal), NowSeconds(reactor_)));
  }
}

void Tunnel::Open() {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
    End(PosixError("socketpair"));
    return;
  }
  plain_.reset(pair[0]);
  UniqueFd other(pair[1]);
  reactor_.Cancel(std::exchange(timer_, 0));
  state_ = State::kOpen;
  reactor_.Watch(plain_.get(), [this] { Step(); });
  handlers_.ready(std::move(other));
}

bool Tunnel::MoveOut() {
  if (out_.empty() && !plain_ended_) {
    const ssize_t n = read(plain_.get(), out_.bytes.data(), out_.bytes.size());
    if (n < 0 && WouldBlock()) return false;
    plain_ended_ = n <= 0;
    out_.begin = 0;
    out_.end = n > 0 ? static_cast<size_t>(n) : 0;
  }
  if (out_.empty()) return false;
  ERR_clear_error();
  const int n = SSL_write(ssl_.get(), out_.bytes.data() + out_.begin,
                          static_cast<int>(out_.end - out_.begin));
  if (n <= 0) {
    Failed(n);
    return false;
  }
  out_.begin += static_cast<size_t>(n);
  return true;
}

bool Tunnel::MoveIn() {
  if (in_.empty() && !tls_ended_) {
    ERR_clear_error();
    const int n = SSL_read(ssl_.get(), in_.bytes.data(), static_cast<int>(in_.bytes.size()));
    if (n <= 0) {
      Failed(n);
      return false;
    }
    in_.begin = 0;
    in_.end = static_cast<size_t>(n);
  }
  if (in_.empty()) return false;
  const ssize_t n =
      send(plain_.get(), in_.bytes.data() + in_.begin, in_.end - in_.begin, MSG_NOSIGNAL);
  if (n < 0 && WouldBlock()) return false;
  if (n < 0) {
    plain_ended_ = true;
    in_.begin = in_.end;
    return false;
  }
  in_.begin += static_cast<size_t>(n);
  return true;
}

void Tunnel::Pump() {
  bool more = true;
  for (int round = 0; more && round < kRounds; ++round) {
    const bool out = !tls_ended_ && MoveOut();
    const bool in = MoveIn();
    more = out || in;
  }
  if (plain_ended_ && (out_.empty() || tls_ended_)) {
    End(absl::OkStatus());
    return;
  }
  if (tls_ended_ && in_.empty()) {
    End(why_);
    return;
  }
  if ((tls_ended_ || plain_ended_) && timer_ == 0) {
    timer_ = reactor_.After(options_.flush, [this] { End(why_); });
  }
  if (more && !step_posted_) {
    step_posted_ = true;
    reactor_.Post([this, alive = alive_] {
      if (!*alive) return;
      step_posted_ = false;
      if (state_ == State::kOpen) Step();
    });
  }
}

void Tunnel::Wait() {
  if (state_ != State::kOpen) {
    reactor_.Want(socket_.get(), !tls_wants_write_, tls_wants_write_);
    return;
  }
  reactor_.Want(socket_.get(), in_.empty() && !tls_ended_, tls_wants_write_);
  reactor_.Want(plain_.get(), out_.empty() && !plain_ended_, !in_.empty());
}

void Tunnel::End(const absl::Status& why) {
  const bool refused = state_ != State::kOpen;
  if (ssl_ && !tls_ended_ && SSL_is_init_finished(ssl_.get()) == 1) SSL_shutdown(ssl_.get());
  shutdown(socket_.get(), SHUT_WR);
  reactor_.Cancel(std::exchange(timer_, 0));
  if (refused) handlers_.ready(why.ok() ? absl::CancelledError("closed") : why);
  if (!refused || options_.side == Side::kClient) {
    Bury(why);
    return;
  }
  state_ = State::kLingering;
  why_ = why;
  timer_ = reactor_.After(kLingering, [this] { Bury(why_); });
  reactor_.Want(socket_.get(), true, false);
}

void Tunnel::Linger() {
  for (int round = 0; round < kRounds; ++round) {
    const ssize_t n = recv(socket_.get(), in_.bytes.data(), in_.bytes.size(), 0);
    if (n < 0 && WouldBlock()) return;
    if (n > 0) continue;
    Bury(why_);
    return;
  }
}

void Tunnel::Bury(const absl::Status& why) {
  state_ = State::kEnded;
  reactor_.Cancel(timer_);
  reactor_.Unwatch(socket_.get());
  if (plain_) reactor_.Unwatch(plain_.get());
  // Before the plain side ends: whoever sees its end may ask why at once.
  handlers_.ended(why);
  ssl_.reset();
  plain_.reset();
}

}  // namespace muster::tls
