#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "controller/api/backend.h"
#include "controller/engine/event.h"

namespace muster::runtime {

// The slow side of staging: reads trees and their pieces on threads of its own, and hands what
// comes out to the engine. A transfer lives as long as the subscription of the client that asked
// for it.
class Stagings {
 public:
  struct Hooks {
    // Any thread: runs a task on the engine thread; false once that is ending.
    std::function<bool(std::function<void()>)> post;
    // Engine thread only.
    std::function<void(decltype(engine::Event::what))> handle;
    std::function<void(const std::string& host, v1::AttachRequest message)> send;
  };
  explicit Stagings(Hooks hooks) : hooks_(std::move(hooks)) {}

  // Any thread. The subscriptions end before the stagings.
  absl::StatusOr<std::unique_ptr<api::Backend::Subscription>> Begin(
      const v1::StageRequest& request, api::Backend::StageCallback callback);

  // For the engine's actions, on its thread.
  void SendPiece(uint64_t id, const std::string& host, uint32_t piece);
  void Tell(uint64_t id, const v1::StageResponse& response, const absl::Status& why);

 private:
  class Staging;
  std::shared_ptr<Staging> Find(uint64_t id);
  void Forget(uint64_t id);

  const Hooks hooks_;
  std::atomic<uint64_t> last_id_{0};
  absl::Mutex mutex_;
  std::map<uint64_t, std::weak_ptr<Staging>> running_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::runtime
