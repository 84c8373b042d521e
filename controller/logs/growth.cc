#include "controller/logs/growth.h"

#include <absl/time/clock.h>
#include <absl/time/time.h>

#include "controller/logs/layout.h"

namespace muster::logs {

Growth::Growth(size_t num_ranks) : streams_(num_ranks * kNumStreams) {}

void Growth::SetSize(size_t stream, uint64_t size) {
  streams_[stream].size.store(size, std::memory_order_release);
  Bump();
}

void Growth::SetEnded(size_t stream) {
  streams_[stream].ended.store(true, std::memory_order_release);
  Bump();
}

void Growth::SetComplete() {
  complete_.store(true, std::memory_order_release);
  Bump();
}

void Growth::Bump() {
  absl::MutexLock lock(&mutex_);
  epoch_.fetch_add(1, std::memory_order_acq_rel);
  changed_.SignalAll();
}

void Growth::Wait(uint64_t seen, std::chrono::milliseconds timeout) const {
  const absl::Time deadline = absl::Now() + absl::FromChrono(timeout);
  absl::MutexLock lock(&mutex_);
  while (epoch() == seen) {
    if (changed_.WaitWithDeadline(&mutex_, deadline)) return;
  }
}

}  // namespace muster::logs
