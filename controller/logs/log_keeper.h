#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>

#include <chrono>
#include <functional>
#include <thread>

#include "common/clock.h"
#include "muster/v1/control.pb.h"

namespace muster::logs {

// Removes logs of ended jobs as their rules say, once an hour, on a thread of its own.
class LogKeeper {
 public:
  struct Options {
    std::chrono::milliseconds interval = std::chrono::hours(1);
    std::chrono::milliseconds first = std::chrono::minutes(1);  // after the start
    const Clock* clock = &Clock::Real();
  };
  // `jobs` gives all jobs, also ended ones, on the keeper's thread; it outlives the keeper.
  using Jobs = std::function<absl::StatusOr<v1::ListJobsResponse>()>;

  // Whether a job still runs, or its logs are still being written: it is left alone then. As
  // `jobs`.
  using Busy = std::function<bool(const v1::Job&)>;

  LogKeeper(const Options& options, Jobs jobs, Busy busy);
  ~LogKeeper();
  LogKeeper(const LogKeeper&) = delete;
  LogKeeper& operator=(const LogKeeper&) = delete;

  // One round over all jobs; on the caller's thread.
  static void Prune(const v1::ListJobsResponse& jobs, int64_t now_ns, const Busy& busy);

 private:
  void Run();

  const Options options_;
  const Jobs jobs_;
  const Busy busy_;
  absl::Mutex mutex_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace muster::logs
