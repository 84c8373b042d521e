#include "worker/daemon/attach_service.h"

#include <deque>
#include <utility>

#include "worker/daemon/certificates.h"

namespace muster::worker {
namespace {

// Beyond this, log chunks wait in their files. Other messages are few and small.
constexpr size_t kHighWater = 1 << 20;

// One stream. gRPC's threads call the On... methods, the reactor thread the Session's; `mutex_`
// guards what they share. It owns itself until OnDone; the worker's shared pointers keep it a
// little longer, closed.
class AttachStream final : public grpc::ServerBidiReactor<v1::AttachRequest, v1::AttachResponse>,
                           public Session,
                           public std::enable_shared_from_this<AttachStream> {
 public:
  AttachStream(Reactor& reactor, const AttachService::Handlers& handlers)
      : reactor_(reactor), handlers_(handlers) {}

  void Begin() {
    self_ = shared_from_this();
    StartRead(&request_);
  }

  // Session
  void Send(v1::AttachResponse message) override {
    absl::MutexLock lock(&mutex_);
    if (finishing_ || broken_) return;
    queued_bytes_ += message.ByteSizeLong();
    queue_.push_back(std::move(message));
    if (queue_.size() == 1) StartWrite(&queue_.front());
  }

  bool Ready() const override {
    absl::MutexLock lock(&mutex_);
    return !finishing_ && !broken_ && queued_bytes_ < kHighWater;
  }

  void Close(const absl::Status& status) override {
    absl::MutexLock lock(&mutex_);
    if (finishing_) return;
    finishing_ = true;
    final_ =
        grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
    FinishIfIdle();
  }

  void ReadNext() override {
    absl::MutexLock lock(&mutex_);
    if (!finishing_ && !broken_) StartRead(&request_);
  }

  // gRPC
  void OnReadDone(bool ok) override {
    if (!ok) {
      // The controller has closed its side, or the connection is gone.
      absl::MutexLock lock(&mutex_);
      broken_ = true;
      finishing_ = true;
      FinishIfIdle();
      return;
    }
    v1::AttachRequest received = std::move(request_);
    request_.Clear();
    // Nothing of request_ after this: the handler's ReadNext gives it back to gRPC, at once
    // perhaps.
    reactor_.Post(
        [this, self = self_, message = std::move(received)] { handlers_.message(self, message); });
  }

  void OnWriteDone(bool ok) override {
    bool drained = false;
    {
      absl::MutexLock lock(&mutex_);
      const size_t before = queued_bytes_;
      queued_bytes_ -= queue_.front().ByteSizeLong();
      queue_.pop_front();
      if (!ok) {
        broken_ = true;
        queue_.clear();
      }
      if (!queue_.empty()) {
        StartWrite(&queue_.front());
      } else {
        FinishIfIdle();
      }
      drained = before >= kHighWater && queued_bytes_ < kHighWater;
    }
    if (drained) {
      reactor_.Post([this, self = self_] { handlers_.writable(self); });
    }
  }

  void OnCancel() override {
    absl::MutexLock lock(&mutex_);
    broken_ = true;
    finishing_ = true;
    FinishIfIdle();
  }

  void OnDone() override {
    reactor_.Post([this, self = std::move(self_)] { handlers_.closed(self); });
  }

 private:
  // gRPC takes no Finish beside a pending write.
  void FinishIfIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!finishing_ || finished_ || !queue_.empty()) return;
    finished_ = true;
    Finish(final_);
  }

  Reactor& reactor_;
  const AttachService::Handlers& handlers_;
  std::shared_ptr<AttachStream> self_;  // set before the first callback, cleared in the last
  v1::AttachRequest request_;           // gRPC's while a read is pending
  mutable absl::Mutex mutex_;
  std::deque<v1::AttachResponse> queue_ ABSL_GUARDED_BY(mutex_);  // the front is being written
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status final_ ABSL_GUARDED_BY(mutex_);
};

template <typename Response>
grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                 absl::StatusOr<Response> result, Response* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (result.ok()) {
    *response = *std::move(result);
    reactor->Finish(grpc::Status::OK);
  } else {
    reactor->Finish(grpc::Status(static_cast<grpc::StatusCode>(result.status().code()),
                                 std::string(result.status().message())));
  }
  return reactor;
}

}  // namespace

AttachService::AttachService(Reactor& reactor, std::string tls_dir, Handlers handlers)
    : reactor_(reactor), tls_dir_(std::move(tls_dir)), handlers_(std::move(handlers)) {}

grpc::ServerBidiReactor<v1::AttachRequest, v1::AttachResponse>* AttachService::Attach(
    grpc::CallbackServerContext*) {
  auto stream = std::make_shared<AttachStream>(reactor_, handlers_);
  stream->Begin();
  return stream.get();
}

grpc::ServerUnaryReactor* AttachService::RequestCertificate(
    grpc::CallbackServerContext* context, const v1::RequestCertificateRequest* request,
    v1::RequestCertificateResponse* response) {
  return Answer(context, worker::RequestCertificate(*request, tls_dir_), response);
}

grpc::ServerUnaryReactor* AttachService::InstallCertificate(
    grpc::CallbackServerContext* context, const v1::InstallCertificateRequest* request,
    v1::InstallCertificateResponse* response) {
  return Answer(context, worker::InstallCertificate(*request, tls_dir_), response);
}

}  // namespace muster::worker
