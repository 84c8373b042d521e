#include "controller/api/stage_call.h"

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include <memory>
#include <optional>
#include <utility>

#include "controller/api/status_code.h"

namespace muster::api {
namespace {

class StageCall final : public grpc::ServerWriteReactor<v1::StageResponse> {
 public:
  explicit StageCall(Backend& backend) : backend_(backend) {}

  void Start(const v1::StageRequest& request) {
    auto subscription = backend_.Stage(
        request, [this](const absl::StatusOr<v1::StageResponse>& news) { OnNews(news); });
    absl::MutexLock lock(&mutex_);
    started_ = true;
    if (subscription.ok()) {
      subscription_ = *std::move(subscription);
      Next();
    } else {
      FinishOnce(ToGrpc(subscription.status()));
    }
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok) FinishOnce(grpc::Status(grpc::StatusCode::CANCELLED, "the client has left"));
    Next();
  }

  void OnCancel() override {
    absl::MutexLock lock(&mutex_);
    if (started_) FinishOnce(grpc::Status(grpc::StatusCode::CANCELLED, "the client has left"));
    cancelled_ = true;
  }

  void OnDone() override {
    {
      absl::MutexLock lock(&mutex_);  // whoever finished the call has left
    }
    // Not under the lock: ending the subscription waits for a callback that may want it.
    subscription_.reset();
    delete this;
  }

 private:
  void OnNews(const absl::StatusOr<v1::StageResponse>& news) {
    absl::MutexLock lock(&mutex_);
    if (end_) return;
    if (news.ok()) {
      newest_ = *news;
      if (news->last()) end_ = absl::OkStatus();
    } else {
      newest_.reset();
      end_ = news.status();
    }
    Next();
  }

  void Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || finished_ || !started_) return;
    if (cancelled_) {
      FinishOnce(grpc::Status(grpc::StatusCode::CANCELLED, "the client has left"));
    } else if (newest_) {
      outgoing_ = *std::exchange(newest_, std::nullopt);
      writing_ = true;
      StartWrite(&outgoing_);
    } else if (end_) {
      FinishOnce(ToGrpc(*end_));
    }
  }

  void FinishOnce(const grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (std::exchange(finished_, true)) return;
    Finish(status);
  }

  Backend& backend_;
  std::unique_ptr<Backend::Subscription> subscription_;  // until OnDone
  absl::Mutex mutex_;
  std::optional<v1::StageResponse> newest_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  v1::StageResponse outgoing_ ABSL_GUARDED_BY(mutex_);
  bool started_ ABSL_GUARDED_BY(mutex_) = false;  // nothing is written or finished before
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

grpc::ServerWriteReactor<v1::StageResponse>* StartStageCall(const v1::StageRequest& request,
                                                            Backend& backend) {
  auto* call = new StageCall(backend);
  call->Start(request);
  return call;
}

}  // namespace muster::api
