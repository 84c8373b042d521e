#include "worker/daemon/reactor.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace muster::worker {

Reactor::Reactor(const Clock& clock)
    : clock_(clock),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  Watch(wake_.get(), [this] {
    uint64_t count;
    (void)!read(wake_.get(), &count, sizeof count);
  });
}

void Reactor::Watch(int fd, std::function<void()> ready) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  watched_[fd] = std::make_shared<std::function<void()>>(std::move(ready));
}

void Reactor::Unwatch(int fd) {
  if (watched_.erase(fd) > 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

Reactor::TimerId Reactor::At(TimePoint when, std::function<void()> fire) {
  timers_.emplace(when, std::make_pair(++last_timer_, std::move(fire)));
  return last_timer_;
}

Reactor::TimerId Reactor::After(std::chrono::nanoseconds delay, std::function<void()> fire) {
  return At(clock_.Now() + delay, std::move(fire));
}

void Reactor::Cancel(TimerId id) {
  const auto it = std::find_if(timers_.begin(), timers_.end(),
                               [id](const auto& timer) { return timer.second.first == id; });
  if (it != timers_.end()) timers_.erase(it);
}

void Reactor::Post(std::function<void()> task) {
  {
    absl::MutexLock lock(&mutex_);
    posted_.push_back(std::move(task));
  }
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);
}

void Reactor::Stop() {
  Post([this] { stop_ = true; });
}

void Reactor::RunPosted() {
  std::vector<std::function<void()>> tasks;
  {
    absl::MutexLock lock(&mutex_);
    tasks.swap(posted_);
  }
  for (auto& task : tasks) task();
}

void Reactor::RunTimers() {
  const TimePoint now = clock_.Now();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    auto timer = timers_.extract(timers_.begin());
    timer.mapped().second();
  }
}

int Reactor::TimeoutMs() const {
  if (timers_.empty()) return -1;
  const auto wait =
      std::chrono::ceil<std::chrono::milliseconds>(timers_.begin()->first - clock_.Now());
  return static_cast<int>(std::clamp<int64_t>(wait.count(), 0, 60'000));
}

void Reactor::Run() {
  while (!stop_) {
    std::array<epoll_event, 64> events;
    const int n =
        epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), TimeoutMs());
    for (int i = 0; i < n; ++i) {
      const auto it = watched_.find(events[static_cast<size_t>(i)].data.fd);
      if (it == watched_.end()) continue;
      const auto ready = it->second;
      (*ready)();
    }
    RunPosted();
    RunTimers();
  }
}

}  // namespace muster::worker
