#pragma once

#include <chrono>
#include <cstdint>

namespace muster {

// Nanoseconds that a process's wall clock is to be wrong by: several nodes on one machine then
// behave as machines whose clocks differ. For tests; musterd passes it on to its shims.
inline constexpr char kClockSkewVariable[] = "MUSTER_CLOCK_SKEW_NS";

// The one source of time, so that tests can own it. Any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  // Wall time in ns since the epoch (CLOCK_REALTIME): for people and for comparing nodes.
  virtual int64_t RealtimeNs() const = 0;
  // Time that never jumps: for time-outs and durations.
  virtual std::chrono::steady_clock::time_point Now() const = 0;

  // The machine's clock.
  static const Clock& Real();
};

// A clock that stands still until a test moves it. Not thread-safe.
class FakeClock : public Clock {
 public:
  int64_t RealtimeNs() const override { return realtime_ns_; }
  std::chrono::steady_clock::time_point Now() const override { return now_; }
  void Advance(std::chrono::nanoseconds d) {
    now_ += d;
    realtime_ns_ += d.count();
  }
  // A wall clock jump (NTP, an operator): the steady clock does not move.
  void JumpRealtime(std::chrono::nanoseconds d) { realtime_ns_ += d.count(); }

 private:
  int64_t realtime_ns_ = 1'700'000'000'000'000'000;
  std::chrono::steady_clock::time_point now_{};
};

}  // namespace muster
