#include "controller/nodes/dial_gate.h"

#include <absl/time/time.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

namespace muster::nodes {
namespace {

using std::chrono::steady_clock;

constexpr absl::Duration kStopCheck = absl::Milliseconds(50);
constexpr absl::Duration kBusyCheck = absl::Milliseconds(3);

}  // namespace

bool MachineIsBusy() {
  // "0.20 0.18 0.12 RUNNABLE/ALL LAST_PID": runnable now, this thread included.
  std::ifstream file("/proc/loadavg");
  std::string text;
  for (int i = 0; i < 4; ++i) file >> text;
  const unsigned long runnable = std::strtoul(text.c_str(), nullptr, 10);
  return runnable > std::thread::hardware_concurrency();
}

DialGate::Place DialGate::Enter(const StopSignal& stop) {
  absl::MutexLock lock(&mutex_);
  const uint64_t number = ++last_number_;
  waiting_.insert(number);
  const auto my_turn = [this, number] {
    mutex_.AssertHeld();
    return free_ > 0 && *waiting_.begin() == number;
  };
  while (!mutex_.AwaitWithTimeout(absl::Condition(&my_turn), kStopCheck) && !stop.is_set()) {
  }
  const auto is_set = [&stop] { return stop.is_set(); };
  while (!stop.is_set() && steady_clock::now() < last_start_ + kPace && busy_()) {
    mutex_.AwaitWithTimeout(absl::Condition(&is_set), kBusyCheck);
  }
  waiting_.erase(number);
  if (stop.is_set()) return Place(nullptr);
  last_start_ = steady_clock::now();
  --free_;
  return Place(this);
}

DialGate::Place::~Place() {
  if (gate_ == nullptr) return;
  absl::MutexLock lock(&gate_->mutex_);
  ++gate_->free_;
}

}  // namespace muster::nodes
