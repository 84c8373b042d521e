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

namespace muster {

// One thread of state: an epoll loop over descriptors, timers and a queue of posted functions.
// Everything but Post and Stop is called on the thread that runs Run() (or before it).
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
  // What `ready` is called for from now on; with neither, not even for a broken descriptor.
  void Want(int fd, bool read, bool write);
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
  struct Watched {
    std::shared_ptr<std::function<void()>> ready;  // shared, so that a callback may unwatch itself
    uint32_t events;                               // 0: not in the epoll set
  };
  std::map<int, Watched> watched_;
  std::multimap<TimePoint, std::pair<TimerId, std::function<void()>>> timers_;
  TimerId last_timer_ = 0;
  absl::Mutex mutex_;
  std::vector<std::function<void()>> posted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster
