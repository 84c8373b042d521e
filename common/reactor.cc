#include "common/reactor.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace muster {

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
  watched_[fd] = {std::make_shared<std::function<void()>>(std::move(ready)), event.events};
}

void Reactor::Want(int fd, bool read, bool write) {
  const auto it = watched_.find(fd);
  if (it == watched_.end()) return;
  epoll_event event{};
  event.events = (read ? uint32_t{EPOLLIN} : 0U) | (write ? uint32_t{EPOLLOUT} : 0U);
  event.data.fd = fd;
  uint32_t& now = it->second.events;
  if (event.events == now) return;
  const int operation = now == 0            ? EPOLL_CTL_ADD
                        : event.events == 0 ? EPOLL_CTL_DEL
                                            : EPOLL_CTL_MOD;
  epoll_ctl(epoll_.get(), operation, fd, &event);
  now = event.events;
}

void Reactor::Unwatch(int fd) {
  const auto it = watched_.find(fd);
  if (it == watched_.end()) return;
  if (it->second.events != 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  watched_.erase(it);
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
      const auto ready = it->second.ready;
      (*ready)();
    }
    RunPosted();
    RunTimers();
  }
}

}  // namespace muster
