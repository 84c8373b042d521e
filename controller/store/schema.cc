#include "controller/store/schema.h"

#include <absl/strings/str_cat.h>

#include <array>
#include <string>

#include "common/status.h"

namespace muster::store {
namespace {

// Migration i brings version i to i + 1. Never edit one that has been released: add another.
//
// Blobs are messages of muster.v1 (masked: no secret is ever in this file); what queries need has
// its own column.
constexpr std::array kMigrations = {
    R"sql(
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE jobs (
  id            INTEGER PRIMARY KEY,
  name          TEXT NOT NULL,
  state         INTEGER NOT NULL,   -- v1.JobState
  open          INTEGER NOT NULL,   -- 1 while the engine has something left to do for it
  attempt       INTEGER NOT NULL,   -- newest
  submitted_ns  INTEGER NOT NULL,
  ended_ns      INTEGER NOT NULL,   -- 0 = not yet
  output_dir    TEXT NOT NULL,
  spec          BLOB NOT NULL,      -- v1.JobSpec, secrets masked
  plan          BLOB,               -- v1.Plan
  outcome       BLOB                -- v1.Outcome
) STRICT;
CREATE INDEX jobs_by_name ON jobs(name, id);
CREATE INDEX jobs_open ON jobs(open) WHERE open = 1;

CREATE TABLE attempts (
  job           INTEGER NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
  attempt       INTEGER NOT NULL,
  master_port   INTEGER NOT NULL,
  started_ns    INTEGER NOT NULL,
  stop          BLOB,               -- v1.Outcome: why it is being stopped
  grace_ms      INTEGER NOT NULL,
  PRIMARY KEY (job, attempt)
) STRICT, WITHOUT ROWID;

CREATE TABLE attempt_nodes (
  job           INTEGER NOT NULL,
  attempt       INTEGER NOT NULL,
  node          INTEGER NOT NULL,   -- index in the plan
  host          TEXT NOT NULL,
  address       BLOB NOT NULL,      -- v1.Host
  generation    INTEGER NOT NULL,   -- of the wish
  goal          INTEGER NOT NULL,   -- v1.Goal
  grace_ms      INTEGER NOT NULL,
  stop_reason   TEXT NOT NULL,
  end_report    BLOB,               -- v1.EndReport
  unverified    TEXT,               -- why, once it was given up
  boot_id       TEXT NOT NULL,
  clock_offset_ns      INTEGER,
  clock_uncertainty_ns INTEGER,
  PRIMARY KEY (job, attempt, node),
  FOREIGN KEY (job, attempt) REFERENCES attempts(job, attempt) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE ranks (
  job           INTEGER NOT NULL,
  attempt       INTEGER NOT NULL,
  rank          INTEGER NOT NULL,
  state         INTEGER NOT NULL,   -- v1.RankState
  status        BLOB NOT NULL,      -- v1.RankStatus
  PRIMARY KEY (job, attempt, rank),
  FOREIGN KEY (job, attempt) REFERENCES attempts(job, attempt) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
  job           INTEGER NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
  sequence      INTEGER NOT NULL,
  time_ns       INTEGER NOT NULL,
  event         BLOB NOT NULL,      -- v1.JobEvent
  PRIMARY KEY (job, sequence)
) STRICT, WITHOUT ROWID;

CREATE TABLE node_history (
  id            INTEGER PRIMARY KEY,
  host          TEXT NOT NULL,
  time_ns       INTEGER NOT NULL,
  state         INTEGER NOT NULL,   -- v1.LinkState
  text          TEXT NOT NULL
) STRICT;
CREATE INDEX node_history_by_host ON node_history(host, time_ns);
)sql",
    R"sql(
CREATE TABLE node_checks (            -- what preflight found last on each host
  host          TEXT PRIMARY KEY,
  time_ns       INTEGER NOT NULL,
  node_check    BLOB NOT NULL         -- v1.NodeCheck
) STRICT, WITHOUT ROWID;
)sql",
    R"sql(
-- of a stop that lets the ranks save first; 0 = none
ALTER TABLE attempts ADD COLUMN save_signal INTEGER NOT NULL DEFAULT 0;
)sql",
};

}  // namespace

int LatestSchema() {
  return static_cast<int>(kMigrations.size());
}

absl::Status Migrate(Database& db) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t version, db.QueryInt("PRAGMA user_version"));
  if (version > LatestSchema()) {
    return absl::FailedPreconditionError(
        absl::StrCat("it was written by a newer Muster (schema ", version, ", this one knows ",
                     LatestSchema(), "); use that version, or another state folder"));
  }
  for (auto next = static_cast<size_t>(version); next < kMigrations.size(); ++next) {
    MUSTER_RETURN_IF_ERROR(db.Execute("BEGIN IMMEDIATE"));
    absl::Status status = db.Execute(kMigrations[next]);
    if (status.ok()) status = db.Execute(absl::StrCat("PRAGMA user_version=", next + 1));
    if (status.ok()) status = db.Execute("COMMIT");
    if (!status.ok()) {
      (void)db.Execute("ROLLBACK");
      return Annotate(status, absl::StrCat("migration to schema ", next + 1));
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::store
