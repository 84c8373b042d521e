#include "controller/api/logs_call.h"

#include <absl/synchronization/notification.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "controller/api/log_stream.h"
#include "controller/api/status_code.h"

namespace muster::api {
namespace {

// Deletes itself when its thread has ended and gRPC is done with it.
class LogsCall : public grpc::ServerWriteReactor<v1::LogsResponse> {
 public:
  LogsCall(v1::LogsRequest request, Backend& backend, const logs::AttemptLogs& attempts,
           ViewerSlots& slots)
      : request_(std::move(request)), backend_(backend), attempts_(attempts), slots_(slots) {}

  void Start() {
    std::thread([this] { Run(); }).detach();
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok) cancelled_.store(true);
  }
  void OnCancel() override { cancelled_.store(true); }
  void OnDone() override { done_.Notify(); }

 private:
  void Run() {
    const absl::Status status = StreamLogs(
        request_, backend_, attempts_,
        [this](v1::LogsResponse run) { return Send(std::move(run)); },
        [this] { return cancelled_.load(); });
    Finish(ToGrpc(status));
    done_.WaitForNotification();
    ViewerSlots& slots = slots_;
    delete this;
    slots.Release();
  }

  // Blocks until the viewer has taken it; gRPC keeps a bounded window of bytes on the way.
  bool Send(v1::LogsResponse run) {
    absl::MutexLock lock(&mutex_);
    outgoing_ = std::move(run);
    writing_ = true;
    StartWrite(&outgoing_);
    const auto written = [this] {
      mutex_.AssertHeld();
      return !writing_;
    };
    mutex_.Await(absl::Condition(&written));
    return !cancelled_.load();
  }

  const v1::LogsRequest request_;
  Backend& backend_;
  const logs::AttemptLogs& attempts_;
  ViewerSlots& slots_;
  std::atomic<bool> cancelled_{false};
  absl::Notification done_;

  absl::Mutex mutex_;
  v1::LogsResponse outgoing_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
};

// A call that is refused at once.
class RefusedCall : public grpc::ServerWriteReactor<v1::LogsResponse> {
 public:
  explicit RefusedCall(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace

bool ViewerSlots::Take() {
  absl::MutexLock lock(&mutex_);
  if (free_ == 0) return false;
  --free_;
  return true;
}

void ViewerSlots::Release() {
  absl::MutexLock lock(&mutex_);
  ++free_;
}

void ViewerSlots::WaitForAll() const {
  absl::MutexLock lock(&mutex_);
  const auto all_free = [this] {
    mutex_.AssertReaderHeld();
    return free_ == limit_;
  };
  mutex_.Await(absl::Condition(&all_free));
}

grpc::ServerWriteReactor<v1::LogsResponse>* StartLogsCall(const v1::LogsRequest& request,
                                                          Backend& backend,
                                                          const logs::AttemptLogs& attempts,
                                                          ViewerSlots& slots) {
  if (!slots.Take()) {
    return new RefusedCall(
        {grpc::StatusCode::RESOURCE_EXHAUSTED,
         std::to_string(slots.limit()) +
             " viewers read logs already; end one, or read the files in the job's output folder"});
  }
  auto* call = new LogsCall(request, backend, attempts, slots);
  call->Start();
  return call;
}

}  // namespace muster::api
