#include "controller/store/reader.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <limits>
#include <utility>

#include "common/status.h"
#include "common/suggest.h"
#include "controller/store/store.h"

namespace muster::store {
namespace {

// Enough for the nearest name; older jobs have their numbers.
constexpr const char* kRecentNames =
    "SELECT name FROM jobs GROUP BY name ORDER BY max(id) DESC LIMIT 200";

absl::Status Damaged(const char* what, uint64_t job) {
  return absl::DataLossError(
      absl::StrCat("the controller's database has a damaged ", what, " of job ", job));
}

template <typename Message>
absl::Status ParseInto(const Statement& row, int column, const char* what, uint64_t job,
                       Message& out) {
  return out.ParseFromString(row.Bytes(column)) ? absl::OkStatus() : Damaged(what, job);
}

template <typename Message>
absl::Status ParseInto(const Statement& row, int column, const char* what, uint64_t job,
                       std::optional<Message>& out) {
  if (row.IsNull(column)) return absl::OkStatus();
  return ParseInto(row, column, what, job, out.emplace());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Reader>> Reader::Open(const std::string& state_dir) {
  MUSTER_ASSIGN_OR_RETURN(Database db,
                          Database::Open(Store::PathIn(state_dir), Database::Mode::kReadOnly));
  return std::unique_ptr<Reader>(new Reader(std::move(db)));
}

absl::StatusOr<std::vector<JobRecord>> Reader::ListJobs(int64_t ended_since_ns) const {
  absl::MutexLock lock(&mutex_);
  return SelectJobs("WHERE ended_ns=0 OR ended_ns>=? ORDER BY id DESC", ended_since_ns);
}

absl::StatusOr<std::vector<JobRecord>> Reader::OpenJobs() const {
  absl::MutexLock lock(&mutex_);
  MUSTER_ASSIGN_OR_RETURN(std::vector<JobRecord> jobs, SelectJobs("WHERE open=? ORDER BY id", 1));
  for (auto& job : jobs) MUSTER_RETURN_IF_ERROR(FillRanks(job));
  return jobs;
}

absl::StatusOr<JobRecord> Reader::GetJob(uint64_t id) const {
  absl::MutexLock lock(&mutex_);
  MUSTER_ASSIGN_OR_RETURN(std::vector<JobRecord> jobs,
                          SelectJobs("WHERE id=?", static_cast<int64_t>(id)));
  if (jobs.empty()) return absl::NotFoundError(absl::StrCat("there is no job ", id));
  MUSTER_RETURN_IF_ERROR(FillRanks(jobs.front()));
  return std::move(jobs.front());
}

absl::StatusOr<uint64_t> Reader::FindJob(const std::string& reference) const {
  absl::MutexLock lock(&mutex_);
  Statement find;
  int64_t id = 0;
  if (reference == "last") {
    MUSTER_ASSIGN_OR_RETURN(find, db_.Prepare("SELECT max(id) FROM jobs"));
  } else if (absl::SimpleAtoi(reference, &id)) {
    MUSTER_ASSIGN_OR_RETURN(find, db_.Prepare("SELECT id FROM jobs WHERE id=?"));
    find.Bind(1, id);
  } else {
    MUSTER_ASSIGN_OR_RETURN(find, db_.Prepare("SELECT max(id) FROM jobs WHERE name=?"));
    find.Bind(1, reference);
  }
  MUSTER_ASSIGN_OR_RETURN(const bool row, find.Step());
  if (row && !find.IsNull(0)) return static_cast<uint64_t>(find.Int(0));

  MUSTER_ASSIGN_OR_RETURN(Statement last, db_.Prepare("SELECT max(id) FROM jobs"));
  MUSTER_RETURN_IF_ERROR(last.Step().status());
  if (last.IsNull(0)) return absl::NotFoundError("there are no jobs yet");
  if (absl::SimpleAtoi(reference, &id)) {
    return absl::NotFoundError(
        absl::StrCat("there is no job ", id, "; the last one is ", last.Int(0)));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::string nearest, NearestName(reference));
  return absl::NotFoundError(absl::StrCat("there is no job named '", reference, "'", nearest));
}

absl::StatusOr<std::string> Reader::NearestName(const std::string& name) const {
  MUSTER_ASSIGN_OR_RETURN(Statement select, db_.Prepare(kRecentNames));
  std::vector<std::string> names = {"last"};
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return DidYouMean(name, names);
    names.push_back(select.Bytes(0));
  }
}

absl::StatusOr<std::vector<v1::JobEvent>> Reader::EventsAfter(uint64_t job, uint64_t after) const {
  absl::MutexLock lock(&mutex_);
  MUSTER_ASSIGN_OR_RETURN(
      Statement select,
      db_.Prepare("SELECT event FROM events WHERE job=? AND sequence>? ORDER BY sequence"));
  const uint64_t bound = std::min<uint64_t>(after, std::numeric_limits<int64_t>::max());
  select.Bind(1, static_cast<int64_t>(job)).Bind(2, static_cast<int64_t>(bound));
  std::vector<v1::JobEvent> events;
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return events;
    MUSTER_RETURN_IF_ERROR(ParseInto(select, 0, "event", job, events.emplace_back()));
  }
}

absl::StatusOr<uint64_t> Reader::LastJobId() const {
  absl::MutexLock lock(&mutex_);
  MUSTER_ASSIGN_OR_RETURN(const int64_t id, db_.QueryInt("SELECT coalesce(max(id), 0) FROM jobs"));
  return static_cast<uint64_t>(id);
}

absl::StatusOr<std::vector<NodeHistoryRecord>> Reader::NodeHistory(const std::string& host) const {
  absl::MutexLock lock(&mutex_);
  MUSTER_ASSIGN_OR_RETURN(
      Statement select,
      db_.Prepare("SELECT time_ns,state,text FROM node_history WHERE host=? ORDER BY id"));
  select.Bind(1, host);
  std::vector<NodeHistoryRecord> history;
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return history;
    history.push_back(
        {host, select.Int(0), static_cast<v1::LinkState>(select.Int(1)), select.Bytes(2)});
  }
}

absl::StatusOr<std::vector<v1::NodeCheck>> Reader::NodeChecks() const {
  absl::MutexLock lock(&mutex_);
  MUSTER_ASSIGN_OR_RETURN(Statement select,
                          db_.Prepare("SELECT node_check FROM node_checks ORDER BY host"));
  std::vector<v1::NodeCheck> checks;
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return checks;
    // What another version wrote is only news of yesterday.
    if (!checks.emplace_back().ParseFromString(select.Bytes(0))) checks.pop_back();
  }
}

absl::StatusOr<std::vector<JobRecord>> Reader::SelectJobs(std::string_view where,
                                                          int64_t value) const {
  MUSTER_ASSIGN_OR_RETURN(
      Statement select,
      db_.Prepare(
          "SELECT id,name,state,open,attempt,submitted_ns,ended_ns,output_dir,spec,plan,outcome "
          "FROM jobs " +
          std::string(where)));
  select.Bind(1, value);
  std::vector<JobRecord> jobs;
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) break;
    JobRecord& job = jobs.emplace_back();
    job.id = static_cast<uint64_t>(select.Int(0));
    job.name = select.Bytes(1);
    job.state = static_cast<v1::JobState>(select.Int(2));
    job.open = select.Int(3) != 0;
    job.attempt = static_cast<uint32_t>(select.Int(4));
    job.submitted_ns = select.Int(5);
    job.ended_ns = select.Int(6);
    job.output_dir = select.Bytes(7);
    MUSTER_RETURN_IF_ERROR(ParseInto(select, 8, "specification", job.id, job.spec));
    MUSTER_RETURN_IF_ERROR(ParseInto(select, 9, "plan", job.id, job.plan));
    MUSTER_RETURN_IF_ERROR(ParseInto(select, 10, "outcome", job.id, job.outcome));
  }
  for (auto& job : jobs) MUSTER_RETURN_IF_ERROR(FillAttempt(job));
  return jobs;
}

absl::Status Reader::FillAttempt(JobRecord& job) const {
  const auto id = static_cast<int64_t>(job.id);
  MUSTER_ASSIGN_OR_RETURN(
      Statement attempt,
      db_.Prepare(
          "SELECT master_port,started_ns,stop,grace_ms,save_signal FROM attempts WHERE job=? AND "
          "attempt=?"));
  MUSTER_ASSIGN_OR_RETURN(const bool row, attempt.Bind(1, id).Bind(2, job.attempt).Step());
  if (row) {
    job.master_port = static_cast<uint32_t>(attempt.Int(0));
    job.started_ns = attempt.Int(1);
    MUSTER_RETURN_IF_ERROR(ParseInto(attempt, 2, "stop", job.id, job.stop));
    job.grace_ms = attempt.Int(3);
    job.save_signal = static_cast<uint32_t>(attempt.Int(4));
  }
  MUSTER_ASSIGN_OR_RETURN(Statement events,
                          db_.Prepare("SELECT coalesce(max(sequence), 0) FROM events WHERE job=?"));
  MUSTER_RETURN_IF_ERROR(events.Bind(1, id).Step().status());
  job.last_sequence = static_cast<uint64_t>(events.Int(0));
  return FillNodes(job);
}

absl::Status Reader::FillNodes(JobRecord& job) const {
  MUSTER_ASSIGN_OR_RETURN(
      Statement nodes,
      db_.Prepare(
          "SELECT "
          "address,generation,goal,grace_ms,stop_reason,end_report,unverified,boot_id,clock_offset_"
          "ns,"
          "clock_uncertainty_ns FROM attempt_nodes WHERE job=? AND attempt=? ORDER BY node"));
  nodes.Bind(1, static_cast<int64_t>(job.id)).Bind(2, job.attempt);
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const bool row, nodes.Step());
    if (!row) return absl::OkStatus();
    NodeRecord& node = job.nodes.emplace_back();
    MUSTER_RETURN_IF_ERROR(ParseInto(nodes, 0, "host", job.id, node.host));
    node.generation = static_cast<uint64_t>(nodes.Int(1));
    node.goal = static_cast<v1::Goal>(nodes.Int(2));
    node.grace_ms = nodes.Int(3);
    node.stop_reason = nodes.Bytes(4);
    MUSTER_RETURN_IF_ERROR(ParseInto(nodes, 5, "end report", job.id, node.end));
    if (!nodes.IsNull(6)) node.unverified = nodes.Bytes(6);
    node.boot_id = nodes.Bytes(7);
    if (!nodes.IsNull(8)) node.clock_offset_ns = nodes.Int(8);
    if (!nodes.IsNull(9)) node.clock_uncertainty_ns = nodes.Int(9);
  }
}

absl::Status Reader::FillRanks(JobRecord& job) const {
  MUSTER_ASSIGN_OR_RETURN(
      Statement ranks,
      db_.Prepare("SELECT status FROM ranks WHERE job=? AND attempt=? ORDER BY rank"));
  ranks.Bind(1, static_cast<int64_t>(job.id)).Bind(2, job.attempt);
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const bool row, ranks.Step());
    if (!row) return absl::OkStatus();
    MUSTER_RETURN_IF_ERROR(ParseInto(ranks, 0, "rank", job.id, job.ranks.emplace_back()));
  }
}

}  // namespace muster::store
