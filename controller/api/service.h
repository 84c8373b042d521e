#pragma once

#include <cstddef>

#include "controller/api/backend.h"
#include "controller/api/logs_call.h"
#include "controller/logs/attempt_logs.h"
#include "muster/v1/control.grpc.pb.h"

namespace muster::api {

// The control service: hands each call to the backend, on gRPC's threads, and gives its status back
// unchanged. References outlive the service.
class ControlService : public v1::Control::CallbackService {
 public:
  ControlService(Backend& backend, const logs::AttemptLogs& attempts, int max_log_viewers,
                 size_t watch_queue)
      : backend_(backend),
        attempts_(attempts),
        watch_queue_(watch_queue),
        viewers_(max_log_viewers) {}

  grpc::ServerUnaryReactor* Submit(grpc::CallbackServerContext* context,
                                   const v1::SubmitRequest* request,
                                   v1::SubmitResponse* response) override;
  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context,
                                     const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override;
  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context,
                                   const v1::GetJobRequest* request,
                                   v1::GetJobResponse* response) override;
  grpc::ServerWriteReactor<v1::WatchResponse>* Watch(grpc::CallbackServerContext* context,
                                                     const v1::WatchRequest* request) override;
  grpc::ServerWriteReactor<v1::LogsResponse>* Logs(grpc::CallbackServerContext* context,
                                                   const v1::LogsRequest* request) override;
  grpc::ServerUnaryReactor* Stop(grpc::CallbackServerContext* context,
                                 const v1::StopRequest* request,
                                 v1::StopResponse* response) override;
  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const v1::CheckRequest* request,
                                  v1::CheckResponse* response) override;
  grpc::ServerWriteReactor<v1::StageResponse>* Stage(grpc::CallbackServerContext* context,
                                                     const v1::StageRequest* request) override;
  grpc::ServerUnaryReactor* ListNodes(grpc::CallbackServerContext* context,
                                      const v1::ListNodesRequest* request,
                                      v1::ListNodesResponse* response) override;
  grpc::ServerUnaryReactor* Info(grpc::CallbackServerContext* context,
                                 const v1::InfoRequest* request,
                                 v1::InfoResponse* response) override;
  grpc::ServerUnaryReactor* Shutdown(grpc::CallbackServerContext* context,
                                     const v1::ShutdownRequest* request,
                                     v1::ShutdownResponse* response) override;

  // After all calls have been cancelled: returns when their threads have ended.
  void WaitForViewers() const { viewers_.WaitForAll(); }

 private:
  Backend& backend_;
  const logs::AttemptLogs& attempts_;
  const size_t watch_queue_;
  ViewerSlots viewers_;
};

}  // namespace muster::api
