#include "controller/cli/controller_process.h"

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>

#include "common/log.h"
#include "common/status.h"
#include "common/version.h"
#include "controller/api/server.h"
#include "controller/api/state_dir.h"
#include "controller/certs/folder.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/signals.h"
#include "controller/engine/transitions.h"
#include "controller/logs/file_registry.h"
#include "controller/logs/growth.h"
#include "controller/logs/log_keeper.h"
#include "controller/nodes/link_factory.h"
#include "controller/runtime/controller.h"

namespace muster::cli {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(50);
// For the end of a controller that no longer answers. Less than who starts us waits.
constexpr auto kEndOfAnother = std::chrono::seconds(10);

// Takes log faults to the controller while there is one; the log organ lives longer on both ends.
// Any thread.
class FaultReporter {
 public:
  void Attach(runtime::Controller* controller) {
    absl::MutexLock lock(&mutex_);
    controller_ = controller;
  }
  void Report(const v1::AttemptId& id, const absl::Status& fault) {
    absl::MutexLock lock(&mutex_);
    if (controller_ != nullptr) {
      controller_->ReportLogFault(id, fault);
    } else if (!fault.ok()) {
      log::Warning(fmt::format("job {}: {}", id.job_id(), ErrorText(fault)));
    }
  }

 private:
  absl::Mutex mutex_;
  runtime::Controller* controller_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

// A connected host has about seven descriptors, so the usual soft limit of 1024 would end at 140.
void RaiseFileLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

absl::Status RunController(const std::string& state_dir) {
  SignalWait signals({SIGINT, SIGTERM, SIGHUP});  // before any thread
  log::Init("muster serve");
  prctl(PR_SET_NAME, "muster");  // started as /proc/self/exe it would be "exe" in ps and top
  RaiseFileLimit();
  MUSTER_ASSIGN_OR_RETURN(const api::StateLock lock,
                          api::StateLock::Acquire(state_dir, kEndOfAnother));

  std::atomic<bool> ended{false};
  FaultReporter faults;
  const std::unique_ptr<logs::FileRegistry> logs = logs::FileRegistry::Make({});
  logs->SetErrorCallback(
      [&](const v1::AttemptId& id, const absl::Status& fault) { faults.Report(id, fault); });

  runtime::Controller::Options options;
  options.state_dir = state_dir;
  options.make_links = [](const std::string& controller_id) {
    nodes::LinkOptions links;
    links.controller_id = controller_id;
    links.tls_dir = certs::DefaultFolder();
    return nodes::MakeLinkFactory(links);
  };
  options.logs = logs.get();
  options.on_shutdown = [&ended] { ended = true; };
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<runtime::Controller> controller,
                          runtime::Controller::Create(std::move(options)));
  faults.Attach(controller.get());

  const logs::LogKeeper keeper(
      {},
      [&controller] {
        v1::ListJobsRequest all;
        all.set_all(true);
        return controller->ListJobs(all);
      },
      [&controller, &logs](const v1::Job& job) {
        if (!engine::IsTerminal(job.state())) return true;
        v1::AttemptId id;
        id.set_controller_id(controller->Info().controller_id());
        id.set_job_id(job.id());
        id.set_attempt(job.attempt());
        const auto growth = logs->Live(id);
        return growth && !growth->complete();
      });
  auto server = api::Server::Start({}, lock, *controller, *logs);
  if (server.ok()) {
    log::Info(fmt::format("version {}, serving {}", kVersion, state_dir));
    while (!ended && !signals.Wait(kPoll)) {
    }
    log::Info("ending; jobs run on");
    server->reset();
  }
  faults.Attach(nullptr);
  return server.status();
}

}  // namespace muster::cli
