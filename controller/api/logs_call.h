#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>

#include "controller/api/backend.h"
#include "controller/logs/attempt_logs.h"
#include "muster/v1/control.pb.h"

namespace muster::api {

// Counts the threads that serve log viewers, so that there are not too many and the server can wait
// for their end. Any thread.
class ViewerSlots {
 public:
  explicit ViewerSlots(int limit) : free_(limit), limit_(limit) {}
  bool Take();
  void Release();
  void WaitForAll() const;
  int limit() const { return limit_; }

 private:
  mutable absl::Mutex mutex_;
  int free_ ABSL_GUARDED_BY(mutex_);
  const int limit_;
};

// A Logs call on a thread of its own: it reads files, which would block gRPC's threads, and at most
// one message waits for a slow viewer. References outlive the call.
grpc::ServerWriteReactor<v1::LogsResponse>* StartLogsCall(const v1::LogsRequest& request,
                                                          Backend& backend,
                                                          const logs::AttemptLogs& attempts,
                                                          ViewerSlots& slots);

}  // namespace muster::api
