#include "controller/api/service.h"

#include <utility>

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
