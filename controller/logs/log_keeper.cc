#include "controller/logs/log_keeper.h"

#include <string>
#include <utility>

#include "common/log.h"
#include "controller/logs/retention.h"

namespace muster::logs {

LogKeeper::LogKeeper(const Options& options, Jobs jobs, Busy busy)
    : options_(options),
      jobs_(std::move(jobs)),
      busy_(std::move(busy)),
      thread_([this] { Run(); }) {}

LogKeeper::~LogKeeper() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  thread_.join();
}

void LogKeeper::Prune(const v1::ListJobsResponse& jobs, int64_t now_ns, const Busy& busy) {
  for (const v1::Job& job : jobs.jobs()) {
    const v1::LogRules& rules = job.spec().logs();
    if (job.output_dir().empty() || busy(job)) continue;
    Retention retention;
    retention.keep_bytes = rules.keep_bytes();
    // In seconds: a thousand years of nanoseconds fit no number.
    retention.remove_all = rules.has_keep_for() &&
                           (now_ns - job.ended_ns()) / 1'000'000'000 > rules.keep_for().seconds();
    const absl::Status status = PruneLogs(job.output_dir(), retention, job.spec().submitter_uid(),
                                          job.spec().submitter_gid());
    if (!status.ok()) log::Warning("job " + job.id() + ": " + std::string(status.message()));
  }
}

void LogKeeper::Run() {
  auto wait = options_.first;
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stop_), absl::FromChrono(wait))) return;
    }
    wait = options_.interval;
    const auto jobs = jobs_();
    if (jobs.ok()) {
      Prune(*jobs, options_.clock->RealtimeNs(), busy_);
    } else {
      log::Warning("list jobs: " + std::string(jobs.status().message()));
    }
  }
}

}  // namespace muster::logs
