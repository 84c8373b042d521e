#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <string>

#include "controller/nodes/stop_signal.h"

namespace muster::nodes {

// How long something may take, and who may end it before.
struct Limits {
  std::chrono::steady_clock::time_point deadline;
  std::chrono::milliseconds total;  // what the deadline once was, for messages
  const StopSignal* stop = nullptr;

  std::chrono::milliseconds Left() const;
  // The same, but not longer than `limit` from now.
  Limits AtMost(std::chrono::milliseconds limit) const;
  // "10 s", "300 ms".
  std::string Total() const;
};

Limits StartLimits(std::chrono::milliseconds total, const StopSignal& stop);

// Waits for one of poll()'s `events` on `fd`, no longer than a moment: callers look again.
// Cancelled: stopped; DeadlineExceeded.
absl::Status WaitFd(int fd, short events, const Limits& limits);

}  // namespace muster::nodes
