#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "common/clock.h"
#include "controller/api/backend.h"
#include "controller/engine/state.h"
#include "controller/logs/log_registry.h"
#include "controller/nodes/node_link.h"
#include "controller/runtime/engine_host.h"
#include "controller/runtime/link_pool.h"
#include "controller/runtime/loop.h"
#include "controller/runtime/output_writer.h"
#include "controller/runtime/stagings.h"
#include "controller/runtime/watchers.h"
#include "controller/store/reader.h"
#include "controller/store/secrets.h"
#include "controller/store/store.h"

namespace muster::runtime {

// The controller: owns the engine thread, the store, the links, and answers the control service.
// Any thread.
class Controller : public api::Backend {
 public:
  struct Options {
    std::string state_dir;                // exists and is locked by the caller (api::StateLock)
    const Clock* clock = &Clock::Real();  // outlives the controller
    // Makes the links; the id is the owner of all jobs of this state folder.
    std::function<std::unique_ptr<nodes::LinkFactory>(const std::string& controller_id)> make_links;
    logs::LogRegistry* logs = nullptr;  // outlives the controller
    engine::Limits limits;
    // Shutdown() was accepted. Called on the engine thread: tells the main thread to end and
    // destroy the controller.
    std::function<void()> on_shutdown;
  };

  // Reads the store, takes up its unfinished jobs and begins to dial their nodes. DataLoss: see
  // Store::Open.
  static absl::StatusOr<std::unique_ptr<Controller>> Create(Options options);
  // Ends the links; jobs run on. No call may be running; subscriptions that are left get nothing
  // more.
  ~Controller() override;

  absl::StatusOr<v1::SubmitResponse> Submit(const v1::JobSpec& spec) override;
  absl::StatusOr<v1::ListJobsResponse> ListJobs(const v1::ListJobsRequest& request) override;
  absl::StatusOr<v1::Job> GetJob(const std::string& job) override;
  absl::StatusOr<v1::StopResponse> Stop(const v1::StopRequest& request) override;
  absl::Status Check(const v1::CheckRequest& request, CheckCallback done) override;
  absl::StatusOr<std::unique_ptr<Subscription>> Stage(const v1::StageRequest& request,
                                                      StageCallback callback) override;
  v1::ListNodesResponse ListNodes() override;
  v1::InfoResponse Info() override;
  absl::Status Shutdown(bool force) override;
  absl::StatusOr<std::unique_ptr<Subscription>> Watch(const std::string& job, uint64_t after,
                                                      EventCallback callback) override;

  // For the log organ: files of an attempt can't be written (or OK: can again). Becomes a line of
  // the job's story.
  void ReportLogFault(const v1::AttemptId& id, const absl::Status& fault);

  const std::string& controller_id() const { return store_->controller_id(); }

 private:
  explicit Controller(Options options, std::unique_ptr<store::Store> store,
                      std::unique_ptr<store::Reader> reader);
  absl::Status Recover();
  absl::Status StoreSubmitted(engine::Submitted submitted);
  absl::Status AddWatcher(uint64_t job, uint64_t after,
                          const std::shared_ptr<Watchers::Watcher>& watcher);

  const Options options_;
  const std::unique_ptr<store::Store> store_;    // engine thread
  const std::unique_ptr<store::Reader> reader_;  // any thread
  store::Secrets secrets_;                       // engine thread
  const std::unique_ptr<nodes::LinkFactory> factory_;
  OutputWriter output_;               // any thread
  const std::shared_ptr<Loop> loop_;  // any thread
  LinkPool links_;                    // engine thread
  Watchers watchers_;                 // engine thread
  Stagings stagings_;                 // any thread
  std::unique_ptr<EngineHost> host_;  // engine thread
  std::atomic<uint64_t> last_job_{0};
  std::atomic<uint64_t> last_check_{0};
};

}  // namespace muster::runtime
