#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "controller/api/backend.h"
#include "controller/runtime/loop.h"

namespace muster::runtime {

// Who watches which job. Any number of watchers cost the engine one copy of the new events each,
// per bunch. Engine thread only, but for the subscriptions, which may end on any thread.
class Watchers {
 public:
  // One viewer. The callback runs under its lock: once End() has returned on another thread, none
  // is running or comes.
  class Watcher {
   public:
    // Events up to number `after` are not wished.
    Watcher(std::shared_ptr<const Loop> loop, uint64_t after, api::Backend::EventCallback callback)
        : loop_(std::move(loop)), callback_(std::move(callback)), last_(after) {}
    // Engine thread. Passes on what the watcher has not had yet; events come in order.
    void Call(const std::vector<v1::JobEvent>& events, const std::optional<v1::Job>& final);
    // From inside the callback this returns at once.
    void End();
    bool ended() const { return ended_; }

   private:
    const std::shared_ptr<const Loop> loop_;  // a viewer may outlive the controller
    const api::Backend::EventCallback callback_;
    uint64_t last_;  // number of the newest event passed on
    absl::Mutex mutex_;
    std::atomic<bool> ended_ = false;
  };

  void Add(uint64_t job, std::shared_ptr<Watcher> watcher);
  // To all watchers of the job; they are dropped after `final`.
  void Deliver(uint64_t job, const std::vector<v1::JobEvent>& events,
               const std::optional<v1::Job>& final);

 private:
  std::multimap<uint64_t, std::shared_ptr<Watcher>> watchers_;
};

// Ends its watcher when destroyed.
std::unique_ptr<api::Backend::Subscription> MakeSubscription(
    std::shared_ptr<Watchers::Watcher> watcher);

}  // namespace muster::runtime
