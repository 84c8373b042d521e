#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include "controller/nodes/stop_signal.h"

namespace muster::nodes {

// Lets only so many links dial through a program at a time: hundreds of ssh clients at once would
// be slower than some after each other. Any thread.
class DialGate {
 public:
  explicit DialGate(int places) : free_(places) {}

  // Holds one place while it lives.
  class Place {
   public:
    explicit Place(DialGate* gate) : gate_(gate) {}
    Place(Place&& other) noexcept : gate_(other.gate_) { other.gate_ = nullptr; }
    Place& operator=(Place&&) = delete;
    ~Place();
    // False: stopped while it waited.
    explicit operator bool() const { return gate_ != nullptr; }

   private:
    DialGate* gate_;
  };

  // Waits for a place, or until `stop` is set.
  Place Enter(const StopSignal& stop);

 private:
  absl::Mutex mutex_;
  int free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::nodes
