#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

namespace muster::logs {

// How far each stream of one attempt has been written, and a way to wait for more. Writers never
// wait for readers. Any thread. Streams are indexed by `rank * kNumStreams + StreamIndex(stream)`.
class Growth {
 public:
  explicit Growth(size_t num_ranks);

  // The stream's file holds `size` bytes.
  void SetSize(size_t stream, uint64_t size);
  // The stream is whole: it will not grow any more.
  void SetEnded(size_t stream);
  // No stream of the attempt will grow any more.
  void SetComplete();

  uint64_t size(size_t stream) const {
    return streams_[stream].size.load(std::memory_order_acquire);
  }
  bool ended(size_t stream) const { return streams_[stream].ended.load(std::memory_order_acquire); }
  bool complete() const { return complete_.load(std::memory_order_acquire); }

  // Grows with every change. Read it before looking at sizes, then wait for another value.
  uint64_t epoch() const { return epoch_.load(std::memory_order_acquire); }
  // Returns when the epoch differs from `seen`, or after `timeout`.
  void Wait(uint64_t seen, std::chrono::milliseconds timeout) const;

 private:
  struct Stream {
    std::atomic<uint64_t> size{0};
    std::atomic<bool> ended{false};
  };

  void Bump();

  std::vector<Stream> streams_;
  std::atomic<bool> complete_{false};
  std::atomic<uint64_t> epoch_{0};
  mutable absl::Mutex mutex_;
  mutable absl::CondVar changed_;
};

}  // namespace muster::logs
