#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "controller/store/records.h"
#include "controller/store/sqlite.h"

namespace muster::store {

// Reads the controller's database over a connection of its own, beside the writer: it sees the last
// commit and never makes the writer wait. Any thread.
class Reader {
 public:
  // After Store::Open of the same folder.
  static absl::StatusOr<std::unique_ptr<Reader>> Open(const std::string& state_dir);

  // Newest first, without ranks. With `ended_since_ns`: all that are open or have ended since then.
  absl::StatusOr<std::vector<JobRecord>> ListJobs(int64_t ended_since_ns) const;
  // Jobs with something left to do, oldest first, with ranks.
  absl::StatusOr<std::vector<JobRecord>> OpenJobs() const;
  // NotFound.
  absl::StatusOr<JobRecord> GetJob(uint64_t id) const;
  // A number, a name (newest of that name) or "last". NotFound names the nearest.
  absl::StatusOr<uint64_t> FindJob(const std::string& reference) const;
  // In order, from `after` + 1 on.
  absl::StatusOr<std::vector<v1::JobEvent>> EventsAfter(uint64_t job, uint64_t after) const;
  // 0 if there is none.
  absl::StatusOr<uint64_t> LastJobId() const;
  // Oldest first.
  absl::StatusOr<std::vector<NodeHistoryRecord>> NodeHistory(const std::string& host) const;
  // What preflight found last, by host name.
  absl::StatusOr<std::vector<v1::NodeCheck>> NodeChecks() const;

 private:
  explicit Reader(Database db) : db_(std::move(db)) {}
  absl::StatusOr<std::vector<JobRecord>> SelectJobs(std::string_view where, int64_t value) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status FillAttempt(JobRecord& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status FillNodes(JobRecord& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status FillRanks(JobRecord& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::string> NearestName(const std::string& name) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  mutable Database db_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::store
