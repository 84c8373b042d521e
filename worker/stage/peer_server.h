#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "common/unique_fd.h"
#include "worker/stage/piece_map.h"
#include "worker/stage/tls_stream.h"

namespace muster::stage {

// Passes pieces on to other workers, each as soon as it is here: a thread for each of a few
// children. Any thread.
class PeerServer {
 public:
  // Reads a piece that is here.
  using Reader = std::function<absl::StatusOr<std::string>(uint32_t piece)>;

  // Listens on a numeric address (empty: all), on the first free port of first..last, or on any
  // when both are 0. The map and what the reader uses outlive the server.
  static absl::StatusOr<std::unique_ptr<PeerServer>> Listen(const std::string& address,
                                                            uint32_t first_port, uint32_t last_port,
                                                            std::string key, const PieceMap& pieces,
                                                            Reader reader);
  // Ends all connections and waits for their threads. The map must have been stopped.
  ~PeerServer();

  uint32_t port() const { return port_; }
  uint64_t bytes_given() const { return bytes_given_; }

 private:
  struct Child {
    UniqueFd socket;  // until its thread takes it
    std::unique_ptr<TlsStream> stream;
    std::thread thread;
    bool ended = false;
  };
  PeerServer(std::string key, const PieceMap& pieces, Reader reader);
  void AcceptLoop();
  void Serve(Child& child);
  absl::Status Answer(TlsStream& stream);
  // Forgets children that have ended.
  void Reap() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string key_;
  const PieceMap& pieces_;
  const Reader reader_;
  UniqueFd listener_;
  UniqueFd stop_;
  uint32_t port_ = 0;
  std::atomic<uint64_t> bytes_given_{0};
  std::thread thread_;
  absl::Mutex mutex_;
  std::list<Child> children_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::stage
