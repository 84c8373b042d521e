#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "controller/store/records.h"
#include "controller/store/sqlite.h"

namespace muster::store {

// The controller's memory: `muster.db` in its state folder (SQLite, WAL). The one writer; readers
// have their own connections (reader.h). Engine thread only.
class Store {
 public:
  // Makes or opens the database (mode 0600) and brings its schema up to date. DataLoss for a
  // damaged file: the message says what to do. `state_dir` exists and is ours.
  static absl::StatusOr<std::unique_ptr<Store>> Open(const std::string& state_dir);

  // One transaction; durable against a killed process when it returns.
  absl::Status Commit(const Batch& batch);

  // A random identity, made once for each database: the owner of all its jobs.
  const std::string& controller_id() const { return controller_id_; }

  // The name of the database file in a state folder.
  static std::string PathIn(const std::string& state_dir);

 private:
  explicit Store(Database db) : db_(std::move(db)) {}
  absl::Status PrepareAll();
  absl::Status ReadIdentity();
  absl::Status Write(const Batch& batch);
  absl::Status WriteJob(const JobRecord& job);

  Database db_;
  std::string controller_id_;
  Statement put_job_;
  Statement put_attempt_;
  Statement put_node_;
  Statement put_rank_;
  Statement put_event_;
  Statement put_history_;
  Statement put_check_;
  Statement close_job_;
};

}  // namespace muster::store
