#include "controller/api/watch_call.h"

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "controller/api/status_code.h"

namespace muster::api {
namespace {

class WatchCall : public grpc::ServerWriteReactor<v1::WatchResponse> {
 public:
  WatchCall(const v1::WatchRequest& request, Backend& backend, size_t max_queue)
      : job_(request.job()), backend_(backend), max_queue_(max_queue), last_(request.after()) {}

  void Start() { Subscribe(); }

  void OnWriteDone(bool ok) override {
    bool again = false;
    {
      absl::MutexLock lock(&mutex_);
      writing_ = false;
      if (!ok) FinishOnce(grpc::Status(grpc::StatusCode::CANCELLED, "the watcher has gone"));
      Next();
      again = NeedsSubscription();
    }
    if (again) Subscribe();
  }

  void OnCancel() override {
    absl::MutexLock lock(&mutex_);
    FinishOnce(grpc::Status(grpc::StatusCode::CANCELLED, "the watcher has gone"));
  }

  void OnDone() override {
    // Not under the lock: ending a subscription waits for a callback that may want it.
    subscription_.reset();
    delete this;
  }

 private:
  // A watcher that fell behind has read all that was held. Marks that Subscribe runs: its first
  // events may be written, and OnWriteDone be called, on another thread before it returns.
  bool NeedsSubscription() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const bool due = behind_ && !writing_ && !finished_ && !subscribing_;
    subscribing_ = subscribing_ || due;
    return due;
  }

  // One thread at a time: at the start, and whenever NeedsSubscription said so.
  void Subscribe() {
    bool again = true;
    while (again) {
      SubscribeOnce();
      absl::MutexLock lock(&mutex_);
      subscribing_ = false;
      again = NeedsSubscription();
    }
  }

  void SubscribeOnce() {
    subscription_.reset();
    uint64_t after = 0;
    {
      // Only now: the former subscription must not add events behind the gap.
      absl::MutexLock lock(&mutex_);
      behind_ = false;
      after = last_;
    }
    auto subscription = backend_.Watch(
        job_, after, [this](std::vector<v1::JobEvent> events, std::optional<v1::Job> final) {
          OnEvents(std::move(events), std::move(final));
        });
    if (subscription.ok()) {
      subscription_ = *std::move(subscription);
      return;
    }
    absl::MutexLock lock(&mutex_);
    FinishOnce(ToGrpc(subscription.status()));
  }

  // Engine thread.
  void OnEvents(std::vector<v1::JobEvent> events, std::optional<v1::Job> final) {
    absl::MutexLock lock(&mutex_);
    if (behind_ || ended_) return;
    for (size_t i = 0; i < events.size(); ++i) {
      if (events[i].sequence() <= last_) continue;
      if (queue_.size() >= max_queue_) {
        behind_ = true;
        break;
      }
      last_ = events[i].sequence();
      v1::WatchResponse response;
      *response.mutable_event() = std::move(events[i]);
      queue_.push_back(std::move(response));
    }
    if (final && !behind_) {
      ended_ = true;
      if (queue_.empty()) queue_.emplace_back();
      *queue_.back().mutable_job() = *std::move(final);
    }
    Next();
  }

  void Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || finished_) return;
    if (queue_.empty()) {
      if (ended_) FinishOnce(grpc::Status::OK);
      return;
    }
    outgoing_ = std::move(queue_.front());
    queue_.pop_front();
    writing_ = true;
    StartWrite(&outgoing_);
  }

  void FinishOnce(const grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (finished_) return;
    finished_ = true;
    Finish(status);
  }

  const std::string job_;
  Backend& backend_;
  const size_t max_queue_;
  std::unique_ptr<Backend::Subscription> subscription_;  // see Subscribe

  absl::Mutex mutex_;
  std::deque<v1::WatchResponse> queue_ ABSL_GUARDED_BY(mutex_);
  v1::WatchResponse outgoing_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_ ABSL_GUARDED_BY(mutex_);            // sequence of the newest event that was queued
  bool behind_ ABSL_GUARDED_BY(mutex_) = false;      // events after last_ were left out
  bool subscribing_ ABSL_GUARDED_BY(mutex_) = true;  // Start does
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;       // the last event is queued
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;     // outgoing_ is on its way
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

grpc::ServerWriteReactor<v1::WatchResponse>* StartWatchCall(const v1::WatchRequest& request,
                                                            Backend& backend, size_t max_queue) {
  auto* call = new WatchCall(request, backend, max_queue);
  call->Start();
  return call;
}

}  // namespace muster::api
