#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "controller/engine/flows.h"
#include "controller/engine/outcome.h"

namespace muster::engine {
namespace {

// The trainer's exit code for "a signal came, and I have saved".
constexpr int32_t kSignalSaved = 75;

// For the nodes' own logs.
std::string StopText(const JobRun& job) {
  return job.stop->message.substr(0, job.stop->message.find('\n'));
}

void StopNodes(Context& c, JobRun& job) {
  for (auto& node : job.nodes) {
    if (node.end) continue;
    node.grace = job.grace;
    node.stop_reason = StopText(job);
    c.Wish(job, node, v1::GOAL_STOPPED);
  }
  c.StartTimer(job, TimerKind::kStop, job.grace + c.state().limits.verify_margin);
}

// What is left, one line a node, or "" when every node has proved that nothing is.
std::string Leftovers(const JobRun& job) {
  std::string text;
  for (const auto& node : job.nodes) {
    if (!node.end) {
      absl::StrAppend(&text, text.empty() ? "" : "\n", node.host.host(), ": unverified, ",
                      node.unverified_why);
    } else if (!node.end->survivors().empty()) {
      absl::StrAppend(&text, text.empty() ? "" : "\n", node.host.host(), ": still living:");
      for (const auto& process : node.end->survivors()) {
        absl::StrAppend(&text, " pid ", process.pid(), " (", process.command(), ") of ",
                        process.user(), ", state ", process.state(),
                        process.wait_channel().empty() ? "" : " in " + process.wait_channel());
      }
    } else if (!node.end->held().empty()) {
      absl::StrAppend(&text, text.empty() ? "" : "\n", node.host.host(),
                      ": not free again: ", absl::StrJoin(node.end->held(), ", "));
    } else if (!node.end->verified()) {
      absl::StrAppend(&text, text.empty() ? "" : "\n", node.host.host(),
                      ": unverified, the node could not look");
    }
  }
  return text;
}

bool AllExitedWell(const JobRun& job) {
  return !job.ranks.empty() &&
         std::all_of(job.ranks.begin(), job.ranks.end(), [](const auto& status) {
           return status.state() == v1::RANK_STATE_EXITED && !IsFailure(status);
         });
}

bool HasSaved(const v1::RankStatus& status) {
  return status.exit().code() == kSignalSaved;
}

bool AllSaved(const JobRun& job) {
  return !job.ranks.empty() && std::all_of(job.ranks.begin(), job.ranks.end(), HasSaved);
}

v1::Outcome StoppedByUser(const JobRun& job) {
  v1::Outcome outcome = MakeOutcome(v1::CAUSE_STOPPED_BY_USER, "stopped by the user");
  if (AllSaved(job)) {
    outcome.set_message("stopped by the user; the ranks saved first (exit code 75)");
    outcome.set_code(0);
    return outcome;
  }
  if (job.save_signal == 0) return outcome;
  const auto unsaved = std::find_if(job.ranks.begin(), job.ranks.end(), [](const auto& status) {
    return !HasSaved(status) && (IsFailure(status) || status.state() == v1::RANK_STATE_KILLED);
  });
  if (unsaved == job.ranks.end()) return outcome;
  outcome.set_message(absl::StrCat(
      "stopped by the user, but NOT every rank has saved: rank ", unsaved->rank(), " ",
      unsaved->state() == v1::RANK_STATE_KILLED ? "did not end within the grace and was killed"
                                                : DescribeExit(*unsaved)));
  return outcome;
}

// Every node is settled: what was it?
v1::Outcome Judge(const JobRun& job) {
  const std::string leftovers = Leftovers(job);
  const auto with_leftovers = [&](v1::Outcome outcome) {
    // A failure keeps its own cause and code; what is left is told beside it.
    if (!leftovers.empty()) outcome.set_message(outcome.message() + "\n" + leftovers);
    return outcome;
  };
  const bool by_user = job.stop && job.stop->cause == v1::CAUSE_STOPPED_BY_USER;
  if (job.stop && !by_user && job.stop->cause != v1::CAUSE_RANK_FAILED) {
    return with_leftovers(MakeOutcome(job.stop->cause, job.stop->message, job.stop->host));
  }
  if (!by_user) {
    if (const auto culprit = FindCulprit(job))
      return with_leftovers(RankFailedOutcome(job, *culprit));
  }
  const bool well = AllExitedWell(job);
  if (!leftovers.empty()) {
    return MakeOutcome(v1::CAUSE_LEFTOVERS,
                       absl::StrCat(by_user ? "stopped by the user"
                                    : well  ? "all ranks exited with 0"
                                            : "the ranks ended",
                                    ", but it is not proved that nothing is left:\n", leftovers));
  }
  if (well) return MakeOutcome(v1::CAUSE_OK, "all ranks exited with 0");
  if (by_user) return StoppedByUser(job);
  return MakeOutcome(v1::CAUSE_INTERNAL,
                     "every node reports its end, but not every rank has an exit status; this is a "
                     "fault of Muster or of a worker, please report it with events.jsonl");
}

}  // namespace

void OnStopRequested(Context& c, const StopRequested& event) {
  const auto found = c.state().jobs.find(event.job);
  if (found == c.state().jobs.end() || IsTerminal(found->second.state)) return;
  JobRun& job = found->second;
  const milliseconds grace =
      event.grace.value_or(event.save ? c.state().limits.save : GraceOf(c.state(), job));
  if (job.state == v1::JOB_STATE_STOPPING) {
    const bool gives_up_saving = job.save_signal != 0 && !event.save;
    if (grace >= job.grace && !gives_up_saving) return;
    job.grace = std::min(grace, job.grace);
    if (gives_up_saving) job.save_signal = 0;
    c.Emit(job, "note",
           absl::StrCat(gives_up_saving ? "the user does not wait for the save any more, grace "
                                        : "the user shortens the grace to ",
                        job.grace.count() / 1000.0, " s"));
    StopNodes(c, job);
    return;
  }
  const StopReason reason{v1::CAUSE_STOPPED_BY_USER, "stopped by the user", ""};
  const auto next = Next(job.state, JobInput::kStopRequested);
  if (next.ok() && *next == v1::JOB_STATE_STOPPED) {
    // Nothing was started: no node needs to be asked.
    job.outcome = MakeOutcome(reason.cause, reason.message);
    c.CancelTimer(job, TimerKind::kConnect);
    c.CancelTimer(job, TimerKind::kProbe);
    if (c.Advance(job, JobInput::kStopRequested, reason.message)) EndJob(c, job);
    return;
  }
  job.grace = grace;
  job.stop = reason;
  if (event.save) {
    job.save_signal =
        job.spec.save_signal() != 0 ? job.spec.save_signal() : static_cast<uint32_t>(SIGTERM);
  }
  const std::string how =
      event.save ? absl::StrCat("the ranks save first (",
                                SignalName(static_cast<int32_t>(job.save_signal)), "), at most ")
                 : "grace ";
  if (!c.Advance(job, JobInput::kStopRequested,
                 absl::StrCat("stopping for the user, ", how, grace.count() / 1000.0, " s"))) {
    return;
  }
  StopNodes(c, job);
  EndIfSettled(c, job);
}

void Break(Context& c, JobRun& job, StopReason reason) {
  job.grace = GraceOf(c.state(), job);
  const std::string text = reason.message;
  job.stop = std::move(reason);
  if (!c.Advance(job, JobInput::kBroken, absl::StrCat("stopping: ", text))) return;
  c.CancelTimer(job, TimerKind::kPrepare);
  c.CancelTimer(job, TimerKind::kStart);
  StopNodes(c, job);
  EndIfSettled(c, job);
}

void OnStopTimeout(Context& c, JobRun& job) {
  const bool waits = job.state == v1::JOB_STATE_STOPPING || job.state == v1::JOB_STATE_RUNNING;
  if (!waits) return;
  for (auto& node : job.nodes) {
    if (node.settled()) continue;
    const std::string& host = node.host.host();
    node.unverified = true;
    node.unverified_why =
        c.IsUp(host)
            ? absl::StrCat("its worker did not prove the end within ",
                           (job.grace + c.state().limits.verify_margin).count() / 1000.0, " s")
            : absl::StrCat("it can't be reached (", c.state().links[host].error, ")");
    // Also after a good end: as soon as the node answers, nothing of the job shall stay there.
    if (node.goal != v1::GOAL_STOPPED) {
      node.grace = job.grace;
      node.stop_reason = "the job has ended";
      c.Wish(job, node, v1::GOAL_STOPPED);
    }
    c.Emit(job, "end", absl::StrCat(host, ": unverified, ", node.unverified_why), "error", host);
  }
  EndIfSettled(c, job);
}

void EndIfSettled(Context& c, JobRun& job) {
  if (job.state != v1::JOB_STATE_STOPPING && job.state != v1::JOB_STATE_RUNNING) return;
  const bool settled = std::all_of(job.nodes.begin(), job.nodes.end(),
                                   [](const NodeRun& node) { return node.settled(); });
  if (!settled) return;
  job.outcome = Judge(job);
  const JobInput input = job.outcome->cause() == v1::CAUSE_OK ? JobInput::kEndedOk
                         : job.outcome->cause() == v1::CAUSE_STOPPED_BY_USER
                             ? JobInput::kEndedStopped
                             : JobInput::kEndedFailed;
  if (c.Advance(job, input, job.outcome->message())) EndJob(c, job);
}

void EndJob(Context& c, JobRun& job) {
  job.ended_ns = c.now_ns();
  c.CancelTimer(job, TimerKind::kStop);
  for (const auto& node : job.nodes) c.CancelTimer(job, TimerKind::kLost, node.host.host());
  for (const auto& node : job.nodes) {
    if (job.logs_open && !node.end) c.Do(AbandonLogs{job.id, node.host.host()});
  }
  c.Persist(job);
  c.Do(engine::Finish{job.id});
  ContinueRelease(c, job);
}

void ContinueRelease(Context& c, JobRun& job) {
  if (!job.logs_open) {
    // Nothing was started. A port that preflight may have held is given back; no answer is waited
    // for.
    if (!job.nodes.empty() && job.nodes.front().probe_id != 0) {
      c.Wish(job, job.nodes.front(), v1::GOAL_FORGOTTEN);
    }
    job.forgotten = true;
    c.Do(engine::Forget{job.id});
    return;
  }
  if (!job.logs_complete) return;
  bool all = true;
  for (auto& node : job.nodes) {
    if (node.end && node.goal != v1::GOAL_FORGOTTEN) c.Wish(job, node, v1::GOAL_FORGOTTEN);
    all = all && node.goal == v1::GOAL_FORGOTTEN && node.reached;
  }
  if (!all) return;
  job.forgotten = true;
  c.Do(engine::Forget{job.id});
}

void OnLogsComplete(Context& c, const LogsComplete& event) {
  for (auto& [id, job] : c.state().jobs) {
    if (absl::StrCat(id) != event.id.job_id() || job.attempt != event.id.attempt()) continue;
    job.logs_complete = true;
    if (!IsTerminal(job.state)) return;
    c.Do(WriteWhy{job.id});
    ContinueRelease(c, job);
    return;
  }
}

void OnInternalError(Context& c, const InternalError& event) {
  const auto found = c.state().jobs.find(event.job);
  if (found == c.state().jobs.end() || found->second.forgotten) return;
  JobRun& job = found->second;
  switch (job.state) {
    case v1::JOB_STATE_QUEUED:
    case v1::JOB_STATE_PLANNING:
    case v1::JOB_STATE_PREFLIGHT:
      Reject(c, job, v1::CAUSE_INTERNAL, event.message);
      break;
    case v1::JOB_STATE_PREPARING:
    case v1::JOB_STATE_STARTING:
    case v1::JOB_STATE_RUNNING:
      Break(c, job, {v1::CAUSE_INTERNAL, event.message, ""});
      break;
    default:
      c.Emit(job, "note", event.message, "error");
      break;
  }
}

void OnRemark(Context& c, const Remark& event) {
  const auto found = c.state().jobs.find(event.job);
  if (found != c.state().jobs.end()) c.Emit(found->second, "note", event.text, "warning");
}

}  // namespace muster::engine
