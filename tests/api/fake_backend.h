#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/api/backend.h"

namespace muster::api {

// A controller that does what the test says. Any thread.
class FakeBackend : public Backend {
 public:
  absl::StatusOr<v1::SubmitResponse> Submit(const v1::JobSpec& spec) override {
    if (spec.name().empty()) return absl::InvalidArgumentError("recipe.toml:3: no name");
    v1::SubmitResponse response;
    response.set_job_id("1");
    response.set_output_dir("/out/" + spec.name());
    return response;
  }
  absl::StatusOr<v1::ListJobsResponse> ListJobs(const v1::ListJobsRequest& request) override {
    v1::ListJobsResponse response;
    response.add_jobs()->set_id(request.all() ? "all" : "1");
    return response;
  }
  absl::StatusOr<v1::Job> GetJob(const std::string& job) override {
    absl::MutexLock lock(&mutex_);
    const auto found = jobs_.find(job);
    if (found == jobs_.end()) return absl::NotFoundError("no job '" + job + "'");
    return found->second;
  }
  absl::StatusOr<v1::StopResponse> Stop(const v1::StopRequest& request) override {
    v1::StopResponse response;
    response.add_job_ids(request.job());
    return response;
  }
  absl::Status Check(const v1::CheckRequest& request, CheckCallback done) override {
    const v1::JobSpec& spec = request.spec();
    if (spec.inventory().hosts().empty()) return absl::InvalidArgumentError("no hosts");
    v1::CheckResponse response;
    response.add_nodes()->set_host(spec.inventory().hosts(0).host());
    done(std::move(response));
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<Subscription>> Stage(const v1::StageRequest& request,
                                                      StageCallback callback) override {
    if (request.inventory().hosts().empty()) return absl::InvalidArgumentError("no hosts");
    v1::StageResponse response;
    response.set_last(true);
    callback(response);
    return std::make_unique<Subscription>();
  }
  v1::ListNodesResponse ListNodes() override {
    v1::ListNodesResponse response;
    response.add_nodes()->set_host("127.0.0.2");
    return response;
  }
  v1::InfoResponse Info() override {
    v1::InfoResponse response;
    response.set_controller_id("c1");
    return response;
  }
  absl::Status Shutdown(bool force) override {
    return force ? absl::OkStatus() : absl::FailedPreconditionError("1 job is active: 7 (tiny)");
  }

  absl::StatusOr<std::unique_ptr<Subscription>> Watch(const std::string& job, uint64_t after,
                                                      EventCallback callback) override {
    absl::MutexLock lock(&mutex_);
    if (jobs_.count(job) == 0) return absl::NotFoundError("no job '" + job + "'");
    auto subscription = std::make_unique<FakeSubscription>(*this);
    ++subscribed_;
    std::vector<v1::JobEvent> old;
    for (const v1::JobEvent& event : events_) {
      if (event.sequence() > after) old.push_back(event);
    }
    if (!old.empty() || final_) callback(std::move(old), final_);
    watchers_[subscription.get()] = std::move(callback);
    return subscription;
  }

  // Adds events up to this number and tells the watchers, as the engine thread does.
  void EmitUpTo(uint64_t sequence, bool last = false) {
    absl::MutexLock lock(&mutex_);
    std::vector<v1::JobEvent> fresh;
    while (events_.size() < sequence) {
      v1::JobEvent event;
      event.set_sequence(events_.size() + 1);
      event.set_text(std::string(event_bytes_, 'x'));
      events_.push_back(event);
      fresh.push_back(event);
    }
    if (last) {
      final_.emplace();
      final_->set_state(v1::JOB_STATE_SUCCEEDED);
    }
    for (auto& [subscription, callback] : watchers_) callback(fresh, final_);
  }
  void SetJob(const v1::Job& job) {
    absl::MutexLock lock(&mutex_);
    jobs_[job.id()] = job;
    jobs_["last"] = job;
  }
  void set_event_bytes(size_t bytes) { event_bytes_ = bytes; }
  int subscribed() {
    absl::MutexLock lock(&mutex_);
    return subscribed_;
  }
  size_t watching() {
    absl::MutexLock lock(&mutex_);
    return watchers_.size();
  }

 private:
  class FakeSubscription : public Subscription {
   public:
    explicit FakeSubscription(FakeBackend& backend) : backend_(backend) {}
    ~FakeSubscription() override {
      absl::MutexLock lock(&backend_.mutex_);
      backend_.watchers_.erase(this);
    }

   private:
    FakeBackend& backend_;
  };

  size_t event_bytes_ = 1;
  absl::Mutex mutex_;
  std::map<std::string, v1::Job> jobs_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::JobEvent> events_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::Job> final_ ABSL_GUARDED_BY(mutex_);
  std::map<const Subscription*, EventCallback> watchers_ ABSL_GUARDED_BY(mutex_);
  int subscribed_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster::api
