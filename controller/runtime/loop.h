#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <absl/synchronization/notification.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "controller/engine/event.h"

namespace muster::runtime {

// The engine thread: runs posted tasks in order, fires timers, and after each bunch of them calls
// `after_bunch`, where what they have caused is committed and carried out.
class Loop {
 public:
  using Task = std::function<void()>;

  // `on_timer` and `after_bunch` run on the engine thread. The clock outlives the loop.
  Loop(const Clock& clock, std::function<void(const engine::TimerKey&)> on_timer, Task after_bunch);
  // Ends the thread after the tasks posted so far; timers that are still set never fire.
  ~Loop();

  // Once.
  void Start();
  // Ends the thread as the destructor does. Not on the engine thread.
  void Stop();

  // Any thread. False once the loop is ending: the task will not run.
  bool Post(Task task);
  // Any thread but the engine's: posts the task and waits until it and its bunch are done. False as
  // Post.
  bool RunAndWait(const Task& task);
  bool OnLoopThread() const { return std::this_thread::get_id() == thread_id_; }

  // Engine thread only.
  void StartTimer(const engine::TimerKey& key, std::chrono::milliseconds after);
  void CancelTimer(const engine::TimerKey& key);
  // Calls after_bunch again after this time, even if nothing happens.
  void WakeAfter(std::chrono::milliseconds after);

 private:
  using Time = std::chrono::steady_clock::time_point;
  void Run();
  void FireTimers();
  // Until the next timer, at most a second.
  std::chrono::nanoseconds Patience() const;

  const Clock& clock_;
  const std::function<void(const engine::TimerKey&)> on_timer_;
  const Task after_bunch_;

  // Engine thread only.
  std::map<engine::TimerKey, Time> timers_;
  std::set<std::pair<Time, engine::TimerKey>> by_time_;
  Time wake_at_ = Time::max();
  std::vector<absl::Notification*> waiting_;

  absl::Mutex mutex_;
  std::vector<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
  std::atomic<std::thread::id> thread_id_{};
};

}  // namespace muster::runtime
