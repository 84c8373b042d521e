#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/v1/control.pb.h"

namespace muster::api {

// What the control service asks of the controller. Implemented by runtime::Controller; faked in
// tests of the service and of the command line. Any thread; calls post to the engine thread and
// wait for its answer (milliseconds), or read the store. JOB arguments: number, name (newest of
// that name) or "last"; NotFound names the nearest.
class Backend {
 public:
  virtual ~Backend() = default;

  // Ends the subscription when destroyed; no call is running or comes after that.
  class Subscription {
   public:
    virtual ~Subscription() = default;
  };

  virtual absl::StatusOr<v1::SubmitResponse> Submit(const v1::JobSpec& spec) = 0;
  virtual absl::StatusOr<v1::ListJobsResponse> ListJobs(const v1::ListJobsRequest& request) = 0;
  virtual absl::StatusOr<v1::Job> GetJob(const std::string& job) = 0;
  virtual absl::StatusOr<v1::StopResponse> Stop(const v1::StopRequest& request) = 0;
  // Begins a preflight without a job, or a sweep for leftovers. OK: `done` is called once, on the
  // engine thread, and must not block; else it never is.
  using CheckCallback = std::function<void(absl::StatusOr<v1::CheckResponse>)>;
  virtual absl::Status Check(const v1::CheckRequest& request, CheckCallback done) = 0;
  // Begins to stage a tree. `callback` is told how far it is, on any thread, and must not block;
  // the response that has `last`, or an error, is the last one. Ending the subscription ends the
  // transfer; what hosts have verified stays there.
  using StageCallback = std::function<void(const absl::StatusOr<v1::StageResponse>& news)>;
  virtual absl::StatusOr<std::unique_ptr<Subscription>> Stage(const v1::StageRequest& request,
                                                              StageCallback callback) = 0;
  virtual v1::ListNodesResponse ListNodes() = 0;
  virtual v1::InfoResponse Info() = 0;
  // Ends the process soon after the answer. FailedPrecondition while jobs are active, unless
  // forced.
  virtual absl::Status Shutdown(bool force) = 0;

  // Called on the engine thread, must not block: events in order, from `after` + 1 on; `final` with
  // the last ones.
  using EventCallback =
      std::function<void(std::vector<v1::JobEvent> events, std::optional<v1::Job> final)>;
  virtual absl::StatusOr<std::unique_ptr<Subscription>> Watch(const std::string& job,
                                                              uint64_t after,
                                                              EventCallback callback) = 0;
};

}  // namespace muster::api
