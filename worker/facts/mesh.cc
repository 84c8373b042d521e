#include "worker/facts/mesh.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <set>

#include "common/unique_fd.h"
#include "worker/facts/port.h"

namespace muster::facts {
namespace {

using SteadyClock = std::chrono::steady_clock;
using TimePoint = SteadyClock::time_point;
using std::chrono::milliseconds;

constexpr size_t kTokenBytes = 16;
constexpr size_t kGreetingBytes = kTokenBytes + 8;  // token, from, to
constexpr size_t kReplyBytes = kTokenBytes + 4;     // token, self
constexpr milliseconds kAgain(50);
constexpr size_t kPeersAtOnce = 200;
constexpr milliseconds kTurn(700);  // of a silent peer, while others wait to be tried
constexpr size_t kCallersAtOnce = 512;

constexpr char kRefused[] = "connection refused";
constexpr char kDropped[] = "no answer: packets are dropped on the way";

void PutNumber(std::string& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
}

uint32_t GetNumber(const std::string& in, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(in[at + i]);
  return value;
}

// Reads until `want` bytes are there. 1: all there; 0: not yet; -1: the other side has gone.
int ReadUpTo(int fd, std::string& buffer, size_t want) {
  while (buffer.size() < want) {
    char bytes[kGreetingBytes];
    const ssize_t n = read(fd, bytes, std::min(sizeof bytes, want - buffer.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return 0;
    if (n <= 0) return -1;
    buffer.append(bytes, static_cast<size_t>(n));
  }
  return 1;
}

// One try at one port of a peer.
struct Attempt {
  UniqueFd fd;
  uint32_t port = 0;
  bool connected = false;
  TimePoint began{};
  TimePoint again{};  // with a closed fd: when to try next
  std::string reply;
  std::string error;  // of the last try that has ended
};

struct Peer {
  uint32_t node = 0;
  SocketAddress address;
  std::vector<Attempt> attempts;
  bool reached = false;
  TimePoint turn{};  // since when it is being tried; the epoch: it waits
  uint32_t microseconds = 0;
};

class Mesh {
 public:
  Mesh(const MeshTask& task, v1::NetworkResult& result) : task_(task), result_(result) {
    for (const MeshPeer& peer : task.connect) {
      Peer& made = peers_.emplace_back();
      made.node = peer.node;
      made.address = peer.address;
      for (const uint32_t port : task.ports) made.attempts.emplace_back().port = port;
    }
    expect_.insert(task.expect.begin(), task.expect.end());
  }

  void Listen(const ProcReader& proc) {
    std::string first_error;
    for (const uint32_t port : task_.ports) {
      SocketAddress address = task_.listen;
      address.SetPort(port);
      UniqueFd fd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      const int on = 1;
      if (fd) setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      if (fd &&
          bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) == 0 &&
          listen(fd.get(), SOMAXCONN) == 0) {
        listener_ = std::move(fd);
        result_.set_port(port);
        return;
      }
      const int error = errno;
      if (!first_error.empty()) continue;
      const std::string where = task_.listen.Text();
      first_error = error == EADDRINUSE      ? DescribePortInUse(where, port, proc)
                    : error == EADDRNOTAVAIL ? where + " is not an address of this node"
                                             : "listen on " + where + ": " + std::strerror(error);
    }
    if (!first_error.empty()) result_.set_listen_error(first_error);
    expect_.clear();  // nobody can come
  }

  void Run(TimePoint deadline) {
    while (!Done() && SteadyClock::now() < deadline) Step(deadline);
    std::sort(peers_.begin(), peers_.end(),
              [](const Peer& a, const Peer& b) { return a.node < b.node; });
    for (const Peer& peer : peers_) {
      v1::PeerResult& said = *result_.add_connected();
      said.set_node(peer.node);
      said.set_address(peer.address.Text());
      said.set_microseconds(peer.microseconds);
      if (!peer.reached) said.set_error(ErrorOf(peer));
    }
    for (const uint32_t node : heard_) result_.add_heard(node);
  }

 private:
  struct Caller {
    UniqueFd fd;
    std::string greeting;
  };

  bool Done() const {
    return expect_.empty() &&
           std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.reached; });
  }

  static std::string ErrorOf(const Peer& peer) {
    // A port whose packets vanish says more than one where nobody listens.
    std::string error;
    for (const Attempt& attempt : peer.attempts) {
      const std::string said = attempt.fd ? Silence(attempt) : attempt.error;
      if (said == kDropped) return kDropped;
      if (error.empty() || (error == kRefused && !said.empty())) error = said;
    }
    return error.empty() ? "not tried in time" : error;
  }

  // What a try has come to so far.
  static const char* Silence(const Attempt& attempt) {
    return attempt.connected ? "accepted, but no answer" : kDropped;
  }

  // With more peers than are tried at once, silent ones make room for those that wait.
  void TakeTurns(TimePoint now) {
    size_t left = 0;
    for (const Peer& peer : peers_) left += peer.reached ? 0 : 1;
    if (left <= kPeersAtOnce) return;
    std::stable_partition(peers_.begin(), peers_.end(), [&](Peer& peer) {
      if (peer.reached || peer.turn == TimePoint{} || now - peer.turn < kTurn) return true;
      peer.turn = {};
      for (Attempt& attempt : peer.attempts) {
        if (!attempt.fd) continue;
        attempt.error = Silence(attempt);
        attempt.fd.reset();
        attempt.again = now;
      }
      return false;
    });
  }

  // Opens the next connections, then waits for something to happen and deals with it.
  void Step(TimePoint deadline) {
    const TimePoint now = SteadyClock::now();
    TimePoint wake = deadline;
    std::vector<pollfd> fds;
    std::vector<std::pair<Peer*, Attempt*>> tries;
    size_t busy = 0;
    TakeTurns(now);
    for (Peer& peer : peers_) {
      if (peer.reached || busy == kPeersAtOnce) continue;
      ++busy;
      if (peer.turn == TimePoint{}) peer.turn = now;
      for (Attempt& attempt : peer.attempts) {
        if (!attempt.fd && attempt.again <= now) Open(peer, attempt);
        if (!attempt.fd) {
          wake = std::min(wake, attempt.again);
          continue;
        }
        const short events = attempt.connected ? POLLIN : POLLOUT;
        fds.push_back({attempt.fd.get(), events, 0});
        tries.emplace_back(&peer, &attempt);
      }
    }
    for (const Caller& caller : callers_) fds.push_back({caller.fd.get(), POLLIN, 0});
    if (listener_) fds.push_back({listener_.get(), POLLIN, 0});
    const auto wait = std::chrono::ceil<milliseconds>(wake - SteadyClock::now()).count();
    if (poll(fds.data(), fds.size(), static_cast<int>(std::clamp<int64_t>(wait, 0, 1000))) <= 0)
      return;
    for (size_t i = 0; i < tries.size(); ++i) {
      if (fds[i].revents != 0 && !tries[i].first->reached)
        Continue(*tries[i].first, *tries[i].second);
    }
    std::vector<Caller> left;
    for (size_t i = 0; i < callers_.size(); ++i) {
      if (fds[tries.size() + i].revents == 0 || Hear(callers_[i]))
        left.push_back(std::move(callers_[i]));
    }
    callers_ = std::move(left);
    if (listener_ && fds.back().revents != 0) Accept();
  }

  void Open(Peer& peer, Attempt& attempt) {
    SocketAddress to = peer.address;
    to.SetPort(attempt.port);
    attempt.connected = false;
    attempt.reply.clear();
    attempt.began = SteadyClock::now();
    attempt.fd.reset(socket(to.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const bool failed =
        !attempt.fd ||
        (connect(attempt.fd.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.size) != 0 &&
         errno != EINPROGRESS);
    if (failed) Fail(attempt, errno == ECONNREFUSED ? kRefused : std::strerror(errno));
  }

  static void Fail(Attempt& attempt, const std::string& error) {
    attempt.error = error;
    attempt.fd.reset();
    attempt.again = SteadyClock::now() + kAgain;
  }

  void Continue(Peer& peer, Attempt& attempt) {
    if (!attempt.connected) {
      int error = 0;
      socklen_t size = sizeof error;
      getsockopt(attempt.fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) {
        Fail(attempt, error == ECONNREFUSED ? kRefused : std::strerror(error));
        return;
      }
      attempt.connected = true;
      std::string greeting = task_.token;
      PutNumber(greeting, task_.self);
      PutNumber(greeting, peer.node);
      // A new connection takes so few bytes at once.
      (void)!send(attempt.fd.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL);
      return;
    }
    const int got = ReadUpTo(attempt.fd.get(), attempt.reply, kReplyBytes);
    if (got == 0) return;
    std::string wanted = task_.token;
    PutNumber(wanted, peer.node);
    if (got < 0 || attempt.reply != wanted) {
      Fail(attempt, "another program answers there");
      return;
    }
    peer.reached = true;
    peer.microseconds = static_cast<uint32_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(SteadyClock::now() - attempt.began)
            .count());
    for (Attempt& other : peer.attempts) other.fd.reset();
  }

  void Accept() {
    while (callers_.size() < kCallersAtOnce) {
      UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!fd) return;
      callers_.push_back({std::move(fd), ""});
    }
    callers_.erase(callers_.begin());  // somebody who says nothing
  }

  // False when the caller is done with.
  bool Hear(Caller& caller) {
    const int got = ReadUpTo(caller.fd.get(), caller.greeting, kGreetingBytes);
    if (got == 0) return true;
    const bool ours = got > 0 && caller.greeting.compare(0, kTokenBytes, task_.token) == 0 &&
                      GetNumber(caller.greeting, kTokenBytes + 4) == task_.self;
    if (!ours) return false;
    std::string reply = task_.token;
    PutNumber(reply, task_.self);
    (void)!send(caller.fd.get(), reply.data(), reply.size(), MSG_NOSIGNAL);
    const uint32_t from = GetNumber(caller.greeting, kTokenBytes);
    heard_.insert(from);
    expect_.erase(from);
    return false;
  }

  const MeshTask& task_;
  v1::NetworkResult& result_;
  UniqueFd listener_;
  std::vector<Peer> peers_;
  std::vector<Caller> callers_;
  std::set<uint32_t> expect_;
  std::set<uint32_t> heard_;
};

}  // namespace

void RunMesh(const MeshTask& task, const ProcReader& proc, TimePoint deadline,
             v1::NetworkResult& result) {
  if (task.token.size() != kTokenBytes) {
    result.set_listen_error("the probe's token has " + std::to_string(task.token.size()) +
                            " bytes instead of " + std::to_string(kTokenBytes));
    return;
  }
  Mesh mesh(task, result);
  mesh.Listen(proc);
  mesh.Run(deadline);
}

}  // namespace muster::facts
