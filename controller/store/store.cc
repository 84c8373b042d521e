#include "controller/store/store.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <array>
#include <utility>

#include "common/status.h"
#include "common/unique_fd.h"
#include "controller/store/schema.h"

namespace muster::store {
namespace {

void BindMessage(Statement& statement, int index, const google::protobuf::MessageLite& message) {
  statement.BindBlob(index, message.SerializeAsString());
}

template <typename Message>
void BindOptional(Statement& statement, int index, const std::optional<Message>& message) {
  if (message) {
    BindMessage(statement, index, *message);
  } else {
    statement.BindNull(index);
  }
}

void BindOptional(Statement& statement, int index, const std::optional<int64_t>& value) {
  if (value) {
    statement.Bind(index, *value);
  } else {
    statement.BindNull(index);
  }
}

// The file must never be readable by others, not even for a moment.
absl::Status MakePrivateFile(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return PosixError("open " + path);
  if (::fchmod(fd.get(), 0600) != 0) return PosixError("chmod " + path);
  return absl::OkStatus();
}

absl::Status CheckIntegrity(Database& db) {
  MUSTER_ASSIGN_OR_RETURN(Statement check, db.Prepare("PRAGMA quick_check(1)"));
  MUSTER_ASSIGN_OR_RETURN(const bool row, check.Step());
  if (row && check.Bytes(0) == "ok") return absl::OkStatus();
  return absl::DataLossError(row ? check.Bytes(0) : "no answer to quick_check");
}

// What a person can do about a database that can't be used.
absl::Status Explain(const absl::Status& status, const std::string& path) {
  absl::Status annotated = Annotate(status, path);
  if (status.code() != absl::StatusCode::kDataLoss) return annotated;
  return absl::DataLossError(absl::StrCat(
      std::string(annotated.message()),
      "\nThe controller's database is damaged. Running jobs are not harmed. Move it away (mv ",
      path, " ", path,
      ".damaged) and start again: the job history is lost, and ranks that still run must be ended "
      "by hand on their hosts."));
}

}  // namespace

std::string Store::PathIn(const std::string& state_dir) {
  return state_dir + "/muster.db";
}

absl::StatusOr<std::unique_ptr<Store>> Store::Open(const std::string& state_dir) {
  const std::string path = PathIn(state_dir);
  MUSTER_RETURN_IF_ERROR(MakePrivateFile(path));
  auto opened = Database::Open(path, Database::Mode::kReadWrite);
  if (!opened.ok()) return Explain(opened.status(), path);
  std::unique_ptr<Store> store(new Store(*std::move(opened)));
  absl::Status status = CheckIntegrity(store->db_);
  // NORMAL: a commit survives the death of the process; a power cut may take the last ones, but
  // never damages the file.
  if (status.ok())
    status = store->db_.Execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL");
  if (status.ok()) status = Migrate(store->db_);
  if (status.ok()) status = store->ReadIdentity();
  if (status.ok()) status = store->PrepareAll();
  if (!status.ok()) return Explain(status, path);
  return store;
}

absl::Status Store::ReadIdentity() {
  std::array<char, 16> random;
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    return PosixError("getrandom");
  }
  MUSTER_ASSIGN_OR_RETURN(Statement put,
                          db_.Prepare("INSERT OR IGNORE INTO meta VALUES('controller_id', ?)"));
  put.Bind(1, absl::BytesToHexString(absl::string_view(random.data(), random.size())));
  MUSTER_RETURN_IF_ERROR(put.Run());
  MUSTER_ASSIGN_OR_RETURN(Statement get,
                          db_.Prepare("SELECT value FROM meta WHERE key='controller_id'"));
  MUSTER_ASSIGN_OR_RETURN(const bool row, get.Step());
  if (!row) return absl::DataLossError("the table meta has no controller_id");
  controller_id_ = get.Bytes(0);
  return absl::OkStatus();
}

absl::Status Store::PrepareAll() {
  const std::pair<Statement*, const char*> all[] = {
      {&put_job_,
       "INSERT INTO jobs VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11) ON CONFLICT(id) DO UPDATE SET "
       "name=?2,state=?3,open=?4,attempt=?5,submitted_ns=?6,ended_ns=?7,output_dir=?8,spec=?9,plan="
       "?10,outcome=?11"},
      {&put_attempt_,
       "INSERT INTO attempts VALUES(?1,?2,?3,?4,?5,?6,?7) ON CONFLICT(job,attempt) DO UPDATE SET "
       "master_port=?3,started_ns=?4,stop=?5,grace_ms=?6,save_signal=?7"},
      {&put_node_, "INSERT OR REPLACE INTO attempt_nodes VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)"},
      {&put_rank_, "INSERT OR REPLACE INTO ranks VALUES(?,?,?,?,?)"},
      {&put_event_, "INSERT INTO events VALUES(?,?,?,?)"},
      {&put_history_, "INSERT INTO node_history(host,time_ns,state,text) VALUES(?,?,?,?)"},
      {&put_check_, "INSERT OR REPLACE INTO node_checks VALUES(?,?,?)"},
      {&close_job_, "UPDATE jobs SET open=0 WHERE id=?"},
  };
  for (const auto& [statement, sql] : all) {
    MUSTER_ASSIGN_OR_RETURN(*statement, db_.Prepare(sql));
  }
  return absl::OkStatus();
}

absl::Status Store::Commit(const Batch& batch) {
  if (batch.empty()) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(db_.Execute("BEGIN IMMEDIATE"));
  absl::Status status = Write(batch);
  if (status.ok()) status = db_.Execute("COMMIT");
  if (!status.ok()) (void)db_.Execute("ROLLBACK");
  return Annotate(status, "write the controller's database");
}

absl::Status Store::Write(const Batch& batch) {
  for (const auto& job : batch.jobs) MUSTER_RETURN_IF_ERROR(WriteJob(job));
  for (const auto& rank : batch.ranks) {
    put_rank_.Bind(1, static_cast<int64_t>(rank.job))
        .Bind(2, rank.attempt)
        .Bind(3, rank.status.rank());
    put_rank_.Bind(4, rank.status.state());
    BindMessage(put_rank_, 5, rank.status);
    MUSTER_RETURN_IF_ERROR(put_rank_.Run());
  }
  for (const auto& [job, event] : batch.events) {
    put_event_.Bind(1, static_cast<int64_t>(job)).Bind(2, static_cast<int64_t>(event.sequence()));
    put_event_.Bind(3, event.time_ns());
    BindMessage(put_event_, 4, event);
    MUSTER_RETURN_IF_ERROR(put_event_.Run());
  }
  for (const auto& entry : batch.node_history) {
    put_history_.Bind(1, entry.host)
        .Bind(2, entry.time_ns)
        .Bind(3, entry.state)
        .Bind(4, entry.text);
    MUSTER_RETURN_IF_ERROR(put_history_.Run());
  }
  for (const auto& check : batch.node_checks) {
    put_check_.Bind(1, check.host()).Bind(2, check.time_ns());
    BindMessage(put_check_, 3, check);
    MUSTER_RETURN_IF_ERROR(put_check_.Run());
  }
  for (const uint64_t job : batch.closed) {
    MUSTER_RETURN_IF_ERROR(close_job_.Bind(1, static_cast<int64_t>(job)).Run());
  }
  return absl::OkStatus();
}

absl::Status Store::WriteJob(const JobRecord& job) {
  const auto id = static_cast<int64_t>(job.id);
  put_job_.Bind(1, id)
      .Bind(2, job.name)
      .Bind(3, job.state)
      .Bind(4, job.open ? 1 : 0)
      .Bind(5, job.attempt);
  put_job_.Bind(6, job.submitted_ns).Bind(7, job.ended_ns).Bind(8, job.output_dir);
  BindMessage(put_job_, 9, job.spec);
  BindOptional(put_job_, 10, job.plan);
  BindOptional(put_job_, 11, job.outcome);
  MUSTER_RETURN_IF_ERROR(put_job_.Run());

  put_attempt_.Bind(1, id).Bind(2, job.attempt).Bind(3, job.master_port).Bind(4, job.started_ns);
  BindOptional(put_attempt_, 5, job.stop);
  put_attempt_.Bind(6, job.grace_ms).Bind(7, job.save_signal);
  MUSTER_RETURN_IF_ERROR(put_attempt_.Run());

  for (size_t i = 0; i < job.nodes.size(); ++i) {
    const NodeRecord& node = job.nodes[i];
    put_node_.Bind(1, id)
        .Bind(2, job.attempt)
        .Bind(3, static_cast<int64_t>(i))
        .Bind(4, node.host.host());
    BindMessage(put_node_, 5, node.host);
    put_node_.Bind(6, static_cast<int64_t>(node.generation))
        .Bind(7, node.goal)
        .Bind(8, node.grace_ms);
    put_node_.Bind(9, node.stop_reason);
    BindOptional(put_node_, 10, node.end);
    if (node.unverified) {
      put_node_.Bind(11, *node.unverified);
    } else {
      put_node_.BindNull(11);
    }
    put_node_.Bind(12, node.boot_id);
    BindOptional(put_node_, 13, node.clock_offset_ns);
    BindOptional(put_node_, 14, node.clock_uncertainty_ns);
    MUSTER_RETURN_IF_ERROR(put_node_.Run());
  }
  return absl::OkStatus();
}

}  // namespace muster::store
