#pragma once

#include <algorithm>
#include <chrono>

namespace muster {

// Exponential back-off: initial, then doubled each time up to the maximum. Not thread-safe.
class Backoff {
 public:
  Backoff(std::chrono::milliseconds initial, std::chrono::milliseconds maximum)
      : initial_(initial), maximum_(maximum), next_(initial) {}

  // The pause before the next try.
  std::chrono::milliseconds Next() {
    const auto pause = next_;
    next_ = std::min(next_ * 2, maximum_);
    return pause;
  }
  // After a success.
  void Reset() { next_ = initial_; }

 private:
  std::chrono::milliseconds initial_;
  std::chrono::milliseconds maximum_;
  std::chrono::milliseconds next_;
};

}  // namespace muster
