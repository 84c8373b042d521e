#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace muster::stage {

// Which pieces of a transfer are here, for those who fetch them and those who wait to pass them on.
// Any thread.
class PieceMap {
 public:
  explicit PieceMap(uint32_t size) : have_(size, false) {}

  // More pieces have become known; none of them is here.
  void Grow(uint32_t size);
  void Set(uint32_t piece, bool here);
  uint32_t size() const;
  uint32_t count() const;
  bool Complete() const;
  // The first one from `from` on that is not here.
  std::optional<uint32_t> NextMissing(uint32_t from) const;

  enum class Wait { kHere, kNotYet, kStopped };
  Wait WaitFor(uint32_t piece, std::chrono::milliseconds limit) const;
  // Ends all waits, for good.
  void Stop();

 private:
  mutable absl::Mutex mutex_;
  std::vector<bool> have_ ABSL_GUARDED_BY(mutex_);
  uint32_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::stage
