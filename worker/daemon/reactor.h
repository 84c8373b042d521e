#pragma once

#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "common/clock.h"
#include "common/unique_fd.h"

namespace muster::worker {

// The daemon's one thread of state: an epoll loop over descriptors, timers and a queue of posted
// functions. Everything but Post and Stop is called on the thread that runs Run() (or before it).
class Reactor {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using TimerId = uint64_t;

  explicit Reactor(const Clock& clock);
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  // Calls `ready` whenever `fd` is readable or broken, until Unwatch. The descriptor stays the
  // caller's.
  void Watch(int fd, std::function<void()> ready);
  // Also from within a callback, the watched one's own included. Before the descriptor is closed.
  void Unwatch(int fd);

  // Calls `fire` once at `when`.
  TimerId At(TimePoint when, std::function<void()> fire);
  TimerId After(std::chrono::nanoseconds delay, std::function<void()> fire);
  // Unknown and fired timers are ignored.
  void Cancel(TimerId id);

  // Any thread: runs `task` on the reactor thread.
  void Post(std::function<void()> task);

  // Until Stop.
  void Run();
  // Any thread.
  void Stop();

  const Clock& clock() const { return clock_; }

 private:
  void RunPosted();
  void RunTimers();
  int TimeoutMs() const;

  const Clock& clock_;
  UniqueFd epoll_;
  UniqueFd wake_;
  bool stop_ = false;
  // Shared, so that a callback may unwatch itself.
  std::map<int, std::shared_ptr<std::function<void()>>> watched_;
  std::multimap<TimePoint, std::pair<TimerId, std::function<void()>>> timers_;
  TimerId last_timer_ = 0;
  absl::Mutex mutex_;
  std::vector<std::function<void()>> posted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::worker
