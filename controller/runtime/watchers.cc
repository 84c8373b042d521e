#include "controller/runtime/watchers.h"

#include <utility>

namespace muster::runtime {
namespace {

class WatcherSubscription : public api::Backend::Subscription {
 public:
  explicit WatcherSubscription(std::shared_ptr<Watchers::Watcher> watcher)
      : watcher_(std::move(watcher)) {}
  ~WatcherSubscription() override { watcher_->End(); }

 private:
  const std::shared_ptr<Watchers::Watcher> watcher_;
};

}  // namespace

void Watchers::Watcher::Call(const std::vector<v1::JobEvent>& events,
                             const std::optional<v1::Job>& final) {
  std::vector<v1::JobEvent> fresh;
  for (const auto& event : events) {
    if (event.sequence() > last_) fresh.push_back(event);
  }
  if (fresh.empty() && !final) return;
  if (!fresh.empty()) last_ = fresh.back().sequence();
  absl::MutexLock lock(&mutex_);
  if (!ended_) callback_(std::move(fresh), final);
}

void Watchers::Watcher::End() {
  ended_ = true;
  // On the engine thread a callback is either on our own stack or not running.
  if (loop_->OnLoopThread()) return;
  absl::MutexLock wait_for_callback(&mutex_);
}

void Watchers::Add(uint64_t job, std::shared_ptr<Watcher> watcher) {
  watchers_.emplace(job, std::move(watcher));
}

void Watchers::Deliver(uint64_t job, const std::vector<v1::JobEvent>& events,
                       const std::optional<v1::Job>& final) {
  const auto [begin, end] = watchers_.equal_range(job);
  for (auto it = begin; it != end;) {
    it->second->Call(events, final);
    it = it->second->ended() || final ? watchers_.erase(it) : std::next(it);
  }
}

std::unique_ptr<api::Backend::Subscription> MakeSubscription(
    std::shared_ptr<Watchers::Watcher> watcher) {
  return std::make_unique<WatcherSubscription>(std::move(watcher));
}

}  // namespace muster::runtime
