#include "controller/nodes/dial_gate.h"

#include <absl/time/time.h>

namespace muster::nodes {
namespace {

constexpr absl::Duration kStopCheck = absl::Milliseconds(50);

}  // namespace

DialGate::Place DialGate::Enter(const StopSignal& stop) {
  absl::MutexLock lock(&mutex_);
  const auto has_place = [this] {
    mutex_.AssertHeld();
    return free_ > 0;
  };
  while (!mutex_.AwaitWithTimeout(absl::Condition(&has_place), kStopCheck)) {
    if (stop.is_set()) return Place(nullptr);
  }
  --free_;
  return Place(this);
}

DialGate::Place::~Place() {
  if (gate_ == nullptr) return;
  absl::MutexLock lock(&gate_->mutex_);
  ++gate_->free_;
}

}  // namespace muster::nodes
