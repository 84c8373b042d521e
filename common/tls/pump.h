#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "common/reactor.h"
#include "common/tls/credentials.h"
#include "common/unique_fd.h"

namespace muster::tls {

class Tunnel;

// A thread that carries TLS connections. gRPC gets one end of a socket pair each and sees plain
// bytes, so that sockets, limits and certificates stay in our hands. Any thread may call; the
// callbacks come on the pump's thread. Destroying it ends all connections.
class Pump {
 public:
  struct Limits {
    std::chrono::milliseconds handshake{10'000};
    size_t handshakes = 256;  // of Accept, at a time; beyond, the oldest has to go
    size_t open = 64;         // of Accept, at a time
  };
  // Why a connection ended, for whoever asks afterwards. Any thread.
  class Epitaph {
   public:
    void Write(std::string why);
    // Empty while the connection stands, and if it ended as it should.
    std::string Read() const;

   private:
    mutable absl::Mutex mutex_;
    std::string why_ ABSL_GUARDED_BY(mutex_);
  };
  struct Opened {
    UniqueFd fd;  // non-blocking
    std::shared_ptr<Epitaph> epitaph;
  };
  using Done = std::function<void(absl::StatusOr<Opened>)>;

  explicit Pump(Limits limits);
  ~Pump();
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;

  // As the server of a node: the peer must be the controller of the same authority.
  void Accept(UniqueFd socket, const std::shared_ptr<Credentials>& credentials, Done done);
  // As the client of a controller: the peer must be `host`.
  void Connect(UniqueFd socket, const std::shared_ptr<Credentials>& credentials,
               const std::string& host, std::chrono::milliseconds limit, Done done);

 private:
  struct Entry {
    std::unique_ptr<Tunnel> tunnel;
    bool server;
    bool open = false;
    bool going = false;  // it has made room; the list is shortened by a task of its own
  };
  struct Request {
    UniqueFd socket;
    std::shared_ptr<Credentials> credentials;
    std::string host;  // Connect
    std::chrono::milliseconds limit;
    bool server = false;
    Done done;
  };
  void Run();
  void Begin(Request request);
  // For one more of Accept: the oldest handshake goes, or there are too many connections.
  absl::Status MakeRoom();

  const Limits limits_;
  Reactor reactor_;
  std::list<Entry> entries_;  // pump's thread; in order of arrival
  std::thread thread_;
};

}  // namespace muster::tls
