#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/unique_fd.h"
#include "worker/stage/tls_stream.h"

namespace muster::stage {

struct Piece {
  uint32_t number = 0;
  std::string bytes;
};

// Where pieces come from. Want and Next are for one thread, Close for any.
class PieceSource {
 public:
  virtual ~PieceSource() = default;
  // Pieces that may be on their way at a time.
  virtual size_t Window() const = 0;
  virtual absl::Status Want(uint32_t piece) = 0;
  // The next piece that was wanted; waits for it. An error: nothing more comes from here.
  virtual absl::StatusOr<Piece> Next() = 0;
  // Ends a waiting Next.
  virtual void Close() = 0;
};

// Another worker.
class PeerSource : public PieceSource {
 public:
  // `address` may be a name, which this host resolves. Returns at once; the first Want connects.
  PeerSource(std::string address, uint32_t port, std::string key);

  size_t Window() const override;
  absl::Status Want(uint32_t piece) override;
  absl::StatusOr<Piece> Next() override;
  void Close() override;

 private:
  absl::Status Connect();

  const std::string address_;
  const uint32_t port_;
  const std::string key_;
  std::unique_ptr<TlsStream> stream_;
  absl::Mutex mutex_;
  UniqueFd socket_ ABSL_GUARDED_BY(mutex_);  // the connection again, for Close
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

// The controller, over the daemon's link.
class ControllerSource : public PieceSource {
 public:
  // `ask` sends the wish; any thread.
  explicit ControllerSource(std::function<void(uint32_t piece)> ask) : ask_(std::move(ask)) {}

  size_t Window() const override;
  absl::Status Want(uint32_t piece) override;
  absl::StatusOr<Piece> Next() override;
  void Close() override;
  // What the controller sent. Any thread.
  void Deliver(Piece piece);

 private:
  const std::function<void(uint32_t)> ask_;
  absl::Mutex mutex_;
  std::deque<Piece> pieces_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::stage
