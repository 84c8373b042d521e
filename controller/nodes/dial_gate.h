#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <set>

#include "controller/nodes/stop_signal.h"

namespace muster::nodes {

// Whether as many threads as this machine has processors, or more, want to compute just now.
bool MachineIsBusy();

// Lets only so many links log in at a time, and while this machine computes all it can one after
// the other, `kPace` apart: a login costs tens of ms of computing, here and there, and hundreds
// that begin at once all end at once, late. Links enter in the order in which they came. Any
// thread.
class DialGate {
 public:
  // Fewer logins a second are never begun, however busy the machine is.
  static constexpr std::chrono::milliseconds kPace{25};

  explicit DialGate(int places, std::function<bool()> busy = MachineIsBusy)
      : busy_(std::move(busy)), free_(places) {}

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

  // Waits for a place and for its turn, or until `stop` is set.
  Place Enter(const StopSignal& stop);

 private:
  const std::function<bool()> busy_;
  absl::Mutex mutex_;
  int free_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<uint64_t> waiting_ ABSL_GUARDED_BY(mutex_);  // numbers; the lowest is the next
  std::chrono::steady_clock::time_point last_start_ ABSL_GUARDED_BY(mutex_){};
};

}  // namespace muster::nodes
