#include "controller/api/service.h"

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include <memory>
#include <utility>

#include "controller/api/stage_call.h"
#include "controller/api/status_code.h"
#include "controller/api/watch_call.h"

namespace muster::api {
namespace {

grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

template <typename Response>
grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                 absl::StatusOr<Response> result, Response* response) {
  if (!result.ok()) return Answer(context, result.status());
  *response = *std::move(result);
  return Answer(context, absl::OkStatus());
}

// A call that ends when the hosts have answered, or when the client leaves. gRPC's threads and the
// engine's; owned by both.
class CheckCall final : public grpc::ServerUnaryReactor {
 public:
  explicit CheckCall(v1::CheckResponse* response) : response_(response) {}

  void Begin(std::shared_ptr<CheckCall> self) { self_ = std::move(self); }

  void End(const absl::StatusOr<v1::CheckResponse>& result) {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(finished_, true)) return;
    if (result.ok()) *response_ = *result;
    Finish(ToGrpc(result.status()));
  }
  void OnCancel() override { End(absl::CancelledError("the client has left")); }
  void OnDone() override { self_.reset(); }

 private:
  v1::CheckResponse* const response_;  // gRPC's, until Finish
  std::shared_ptr<CheckCall> self_;    // until OnDone
  absl::Mutex mutex_;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

grpc::ServerUnaryReactor* ControlService::Submit(grpc::CallbackServerContext* context,
                                                 const v1::SubmitRequest* request,
                                                 v1::SubmitResponse* response) {
  return Answer(context, backend_.Submit(request->spec()), response);
}

grpc::ServerUnaryReactor* ControlService::ListJobs(grpc::CallbackServerContext* context,
                                                   const v1::ListJobsRequest* request,
                                                   v1::ListJobsResponse* response) {
  return Answer(context, backend_.ListJobs(*request), response);
}

grpc::ServerUnaryReactor* ControlService::GetJob(grpc::CallbackServerContext* context,
                                                 const v1::GetJobRequest* request,
                                                 v1::GetJobResponse* response) {
  return Answer(context, backend_.GetJob(request->job()), response->mutable_job());
}

grpc::ServerWriteReactor<v1::WatchResponse>* ControlService::Watch(
    grpc::CallbackServerContext* /*context*/, const v1::WatchRequest* request) {
  return StartWatchCall(*request, backend_, watch_queue_);
}

grpc::ServerWriteReactor<v1::LogsResponse>* ControlService::Logs(
    grpc::CallbackServerContext* /*context*/, const v1::LogsRequest* request) {
  return StartLogsCall(*request, backend_, attempts_, viewers_);
}

grpc::ServerUnaryReactor* ControlService::Stop(grpc::CallbackServerContext* context,
                                               const v1::StopRequest* request,
                                               v1::StopResponse* response) {
  return Answer(context, backend_.Stop(*request), response);
}

grpc::ServerUnaryReactor* ControlService::Check(grpc::CallbackServerContext* /*context*/,
                                                const v1::CheckRequest* request,
                                                v1::CheckResponse* response) {
  const auto call = std::make_shared<CheckCall>(response);
  call->Begin(call);
  const absl::Status begun = backend_.Check(
      *request, [call](const absl::StatusOr<v1::CheckResponse>& result) { call->End(result); });
  if (!begun.ok()) call->End(begun);
  return call.get();
}

grpc::ServerWriteReactor<v1::StageResponse>* ControlService::Stage(
    grpc::CallbackServerContext* /*context*/, const v1::StageRequest* request) {
  return StartStageCall(*request, backend_);
}

grpc::ServerUnaryReactor* ControlService::ListNodes(grpc::CallbackServerContext* context,
                                                    const v1::ListNodesRequest* /*request*/,
                                                    v1::ListNodesResponse* response) {
  *response = backend_.ListNodes();
  return Answer(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* ControlService::Info(grpc::CallbackServerContext* context,
                                               const v1::InfoRequest* /*request*/,
                                               v1::InfoResponse* response) {
  *response = backend_.Info();
  return Answer(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* ControlService::Shutdown(grpc::CallbackServerContext* context,
                                                   const v1::ShutdownRequest* request,
                                                   v1::ShutdownResponse* /*response*/) {
  return Answer(context, backend_.Shutdown(request->force()));
}

}  // namespace muster::api
