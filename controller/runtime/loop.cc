#include "controller/runtime/loop.h"

#include <absl/time/time.h>

#include <algorithm>

namespace muster::runtime {

Loop::Loop(const Clock& clock, std::function<void(const engine::TimerKey&)> on_timer,
           Task after_bunch)
    : clock_(clock), on_timer_(std::move(on_timer)), after_bunch_(std::move(after_bunch)) {}

Loop::~Loop() {
  Stop();
}

void Loop::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Loop::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

bool Loop::Post(Task task) {
  absl::MutexLock lock(&mutex_);
  if (closed_) return false;
  tasks_.push_back(std::move(task));
  return true;
}

bool Loop::RunAndWait(const Task& task) {
  absl::Notification done;
  const bool posted = Post([&] {
    task();
    waiting_.push_back(&done);
  });
  if (posted) done.WaitForNotification();
  return posted;
}

void Loop::StartTimer(const engine::TimerKey& key, std::chrono::milliseconds after) {
  CancelTimer(key);
  const Time at = clock_.Now() + after;
  timers_[key] = at;
  by_time_.emplace(at, key);
}

void Loop::CancelTimer(const engine::TimerKey& key) {
  const auto it = timers_.find(key);
  if (it == timers_.end()) return;
  by_time_.erase({it->second, key});
  timers_.erase(it);
}

void Loop::WakeAfter(std::chrono::milliseconds after) {
  wake_at_ = clock_.Now() + after;
}

std::chrono::nanoseconds Loop::Patience() const {
  Time next = std::min(wake_at_, clock_.Now() + std::chrono::seconds(1));
  if (!by_time_.empty()) next = std::min(next, by_time_.begin()->first);
  return std::max(next - clock_.Now(), std::chrono::nanoseconds(0));
}

void Loop::FireTimers() {
  const Time now = clock_.Now();
  while (!by_time_.empty() && by_time_.begin()->first <= now) {
    const engine::TimerKey key = by_time_.begin()->second;
    CancelTimer(key);
    on_timer_(key);
  }
}

void Loop::Run() {
  thread_id_ = std::this_thread::get_id();
  const auto ready = [this]()
                         ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return closed_ || !tasks_.empty(); };
  while (true) {
    std::vector<Task> tasks;
    bool last = false;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.AwaitWithTimeout(absl::Condition(&ready), absl::FromChrono(Patience()));
      tasks.swap(tasks_);
      last = closed_;
    }
    for (const auto& task : tasks) task();
    if (!last) FireTimers();
    if (clock_.Now() >= wake_at_) wake_at_ = Time::max();
    after_bunch_();
    for (auto* done : std::exchange(waiting_, {})) done->Notify();
    if (last) return;
  }
}

}  // namespace muster::runtime
