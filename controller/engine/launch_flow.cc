#include <absl/strings/str_cat.h>

#include <algorithm>
#include <string>
#include <utility>

#include "controller/engine/flows.h"
#include "controller/engine/outcome.h"
#include "controller/engine/text.h"

namespace muster::engine {
namespace {

std::string Ranks(size_t count) {
  return absl::StrCat(count, count == 1 ? " rank" : " ranks");
}
std::string Nodes(size_t count) {
  return absl::StrCat(count, count == 1 ? " node" : " nodes");
}

const NodeRun& NodeOf(const JobRun& job, uint32_t rank) {
  return job.nodes[job.plan->ranks(static_cast<int>(rank)).node()];
}

const std::string& HostOf(const JobRun& job, uint32_t rank) {
  return NodeOf(job, rank).host.host();
}

bool HasRun(const v1::RankStatus& status) {
  return status.state() == v1::RANK_STATE_RUNNING || status.state() == v1::RANK_STATE_EXITED ||
         status.state() == v1::RANK_STATE_KILLED;
}

bool HasEnded(const v1::RankStatus& status) {
  return status.state() == v1::RANK_STATE_EXITED || status.state() == v1::RANK_STATE_KILLED;
}

// The story of one rank: what a person wants to see as it happens.
void TellRank(Context& c, JobRun& job, const v1::RankStatus& before, const v1::RankStatus& after) {
  const std::string& host = HostOf(job, after.rank());
  const std::string who = absl::StrCat("rank ", after.rank(), " on ", host, " ");
  if (after.state() == v1::RANK_STATE_RUNNING && after.stopped() != before.stopped()) {
    c.Emit(job, "rank", who + (after.stopped() ? "is stopped (state T)" : "runs again"),
           after.stopped() ? "warning" : "note", host, after.rank());
  }
  if (after.log_waits() && !before.log_waits()) {
    c.Emit(job, "rank",
           who + "waits in its output: its log quota is full, and the controller takes none of it",
           "warning", host, after.rank());
  }
  if (after.lost_bytes() > 0 && before.lost_bytes() == 0) {
    c.Emit(job, "rank",
           absl::StrCat(who, "has lost output, ", after.lost_bytes(),
                        " bytes by now: ", Printable(after.lost_reason())),
           "warning", host, after.rank());
  }
  if (after.state() == before.state()) return;
  if (after.state() == v1::RANK_STATE_EXITED) {
    const auto running = std::count_if(job.ranks.begin(), job.ranks.end(), [](const auto& status) {
      return status.state() == v1::RANK_STATE_RUNNING;
    });
    const std::string rest = running == 0
                                 ? ""
                                 : absl::StrCat("; ", Ranks(static_cast<size_t>(running)),
                                                running == 1 ? " still runs" : " still run");
    c.Emit(job, "rank", who + DescribeExit(after) + rest, IsFailure(after) ? "error" : "note", host,
           after.rank());
  } else if (after.state() == v1::RANK_STATE_KILLED) {
    c.Emit(job, "rank", absl::StrCat(who, "ended by the stop: ", DescribeExit(after)), "note", host,
           after.rank());
  }
}

// Takes over what a node says of one rank. False: the node has lost the rank that it had started.
bool TakeRank(Context& c, JobRun& job, const v1::RankStatus& status) {
  v1::RankStatus& known = job.ranks[status.rank()];
  const auto next = Next(known.state(), status.state());
  if (!next.ok()) {
    const bool forgot = known.state() == v1::RANK_STATE_RUNNING;
    if (!forgot) {
      c.ReportIllegal(&job, absl::StrCat(HostOf(job, status.rank()), ": rank ", status.rank(), ": ",
                                         std::string(next.status().message())));
    }
    return !forgot;
  }
  if (known.SerializeAsString() == status.SerializeAsString()) return true;
  const v1::RankStatus before = std::exchange(known, status);
  TellRank(c, job, before, known);
  c.Do(PersistRank{job.id, status.rank()});
  return true;
}

// The last bytes of a rank are counted after its end.
void TakeLoss(Context& c, JobRun& job, const v1::RankStatus& status) {
  v1::RankStatus& known = job.ranks[status.rank()];
  if (status.lost_bytes() <= known.lost_bytes()) return;
  known.set_lost_bytes(status.lost_bytes());
  known.set_lost_reason(status.lost_reason());
  c.Do(PersistRank{job.id, status.rank()});
}

void TakeEnd(Context& c, JobRun& job, NodeRun& node, const v1::EndReport& end) {
  const bool late = node.unverified;
  node.end = end;
  node.unverified = false;
  c.CancelTimer(job, TimerKind::kLost, node.host.host());
  const std::string& host = node.host.host();
  for (const auto& process : end.swept()) {
    c.Emit(job, "end",
           absl::StrCat(host, ": pid ", process.pid(), " (", process.command(),
                        ") had outlived its rank and was ended"),
           "warning", host);
  }
  for (const auto& process : end.survivors()) {
    c.Emit(job, "end",
           absl::StrCat(host, ": pid ", process.pid(), " (", process.command(), ") of ",
                        process.user(), " still lives, state ", process.state(),
                        process.wait_channel().empty() ? "" : " in " + process.wait_channel()),
           "error", host);
  }
  for (const auto& note : end.notes())
    c.Emit(job, "end", absl::StrCat(host, ": ", note), "note", host);
  for (const auto& held : end.held())
    c.Emit(job, "end", absl::StrCat(host, ": not free again: ", held), "error", host);
  const bool clean = IsClean(end);
  c.Emit(job, "end",
         absl::StrCat(host,
                      clean             ? ": clean, no process of the job is left"
                      : !end.verified() ? ": could not verify that nothing is left"
                                        : ": NOT clean",
                      late ? " (after the job had been given up on this node)" : ""),
         clean ? "note" : "error", host);
  c.Persist(job);
}

// What keeps this node from doing what is wished, or "".
std::string NodeTrouble(const v1::Observed& observed) {
  if (!observed.refused().empty()) return observed.refused();
  for (const auto& status : observed.ranks()) {
    // A rank that was lost with its shim had been started.
    if (status.error().empty() || status.exit().shim_lost()) continue;
    return absl::StrCat("rank ", status.rank(), ": ", status.error());
  }
  return "";
}

}  // namespace

void BeginPreparing(Context& c, JobRun& job) {
  job.ranks.clear();
  for (const auto& rank : job.plan->ranks()) {
    v1::RankStatus& status = job.ranks.emplace_back();
    status.set_rank(rank.rank());
    status.set_state(v1::RANK_STATE_ABSENT);
    c.Do(PersistRank{job.id, rank.rank()});
  }
  job.logs_open = true;
  c.Do(OpenLogs{job.id});
  c.StartTimer(job, TimerKind::kPrepare, c.state().limits.prepare);
  for (auto& node : job.nodes) c.Wish(job, node, v1::GOAL_PREPARED);
}

void OnNodeObserved(Context& c, const NodeObserved& event) {
  const v1::Observed& observed = event.observed;
  if (observed.id().controller_id() != c.state().controller_id) return;
  const auto found = std::find_if(
      c.state().jobs.begin(), c.state().jobs.end(),
      [&](const auto& entry) { return absl::StrCat(entry.first) == observed.id().job_id(); });
  if (found == c.state().jobs.end()) return;
  JobRun& job = found->second;
  const auto index = FindNode(job, event.host);
  if (!index || job.attempt != observed.id().attempt() || !job.plan) return;
  NodeRun& node = job.nodes[*index];
  if (node.goal == v1::GOAL_UNSPECIFIED) return;  // a report about a probe's held port

  if (observed.generation() > node.generation) {
    // The node has accepted a wish that our store does not know (it was restored from a copy): go
    // above it.
    node.generation = observed.generation();
    c.Wish(job, node, node.goal);
    return;
  }
  bool kept = true;
  for (const auto& status : observed.ranks()) {
    if (status.rank() >= job.ranks.size() ||
        job.plan->ranks(static_cast<int>(status.rank())).node() != *index) {
      c.ReportIllegal(&job, absl::StrCat(event.host, " reports rank ", status.rank(),
                                         ", which is not its own"));
      continue;
    }
    if (!IsTerminal(job.state)) {
      kept = TakeRank(c, job, status) && kept;
    } else {
      TakeLoss(c, job, status);
    }
  }
  if (observed.generation() == node.generation && observed.goal() == node.goal) {
    node.reached = observed.reached();
  }
  const bool may_end = node.goal == v1::GOAL_RUNNING || node.goal == v1::GOAL_STOPPED;
  if (observed.has_end() && may_end && !node.end) TakeEnd(c, job, node, observed.end());

  const std::string trouble = NodeTrouble(observed);
  switch (job.state) {
    case v1::JOB_STATE_PREPARING:
    case v1::JOB_STATE_STARTING:
      if (!trouble.empty()) {
        const char* const what = job.state == v1::JOB_STATE_PREPARING ? "prepare" : "start";
        Break(c, job,
              {v1::CAUSE_LAUNCH_FAILED,
               absl::StrCat(event.host, " could not ", what, " its ranks: ", trouble), event.host});
        return;
      }
      [[fallthrough]];
    case v1::JOB_STATE_RUNNING:
      if (!kept || !observed.refused().empty()) {
        Break(c, job,
              {v1::CAUSE_NODE_LOST,
               absl::StrCat(event.host, " has lost its state and with it the ranks of this job",
                            trouble.empty() ? "" : ": " + trouble),
               event.host});
        return;
      }
      break;
    default:
      break;
  }
  ContinueRun(c, job);
}

void ContinueRun(Context& c, JobRun& job) {
  if (IsTerminal(job.state)) {
    ContinueRelease(c, job);
    return;
  }
  if (job.state == v1::JOB_STATE_PREPARING) {
    const bool ended = std::any_of(job.ranks.begin(), job.ranks.end(), HasRun);
    const bool reached = std::all_of(job.nodes.begin(), job.nodes.end(),
                                     [](const NodeRun& node) { return node.reached; });
    if (!reached && !ended) return;
    if (ended) {
      const auto rank = std::find_if(job.ranks.begin(), job.ranks.end(), HasRun)->rank();
      Break(c, job,
            {v1::CAUSE_LAUNCH_FAILED,
             absl::StrCat("rank ", rank, " on ", HostOf(job, rank), " ended before its start"),
             HostOf(job, rank)});
      return;
    }
    c.CancelTimer(job, TimerKind::kPrepare);
    if (!c.Advance(
            job, JobInput::kPrepared,
            absl::StrCat("starting ", Ranks(job.ranks.size()), " on ", Nodes(job.nodes.size())))) {
      return;
    }
    c.StartTimer(job, TimerKind::kStart, c.state().limits.start);
    for (auto& node : job.nodes) c.Wish(job, node, v1::GOAL_RUNNING);
    return;
  }
  if (job.state == v1::JOB_STATE_STARTING &&
      std::all_of(job.ranks.begin(), job.ranks.end(), HasRun)) {
    c.CancelTimer(job, TimerKind::kStart);
    job.started_ns = c.now_ns();
    if (!c.Advance(
            job, JobInput::kStarted,
            absl::StrCat("running: ", Ranks(job.ranks.size()), " on ", Nodes(job.nodes.size())))) {
      return;
    }
  }
  if (job.state == v1::JOB_STATE_STARTING || job.state == v1::JOB_STATE_RUNNING) {
    if (const auto culprit = FindCulprit(job)) {
      const v1::Outcome outcome = RankFailedOutcome(job, *culprit);
      Break(c, job, {v1::CAUSE_RANK_FAILED, outcome.message(), outcome.host()});
      return;
    }
    const auto lost = std::find_if(job.ranks.begin(), job.ranks.end(), [&](const auto& status) {
      return !HasEnded(status) && NodeOf(job, status.rank()).end;
    });
    if (lost != job.ranks.end()) {
      const std::string& host = HostOf(job, lost->rank());
      Break(c, job,
            {v1::CAUSE_NODE_LOST,
             absl::StrCat(host, " reports its end, but has no exit status of rank ", lost->rank()),
             host});
      return;
    }
    const auto killed = std::find_if(job.ranks.begin(), job.ranks.end(), [](const auto& status) {
      return status.state() == v1::RANK_STATE_KILLED;
    });
    if (killed != job.ranks.end()) {
      const std::string& host = HostOf(job, killed->rank());
      Break(c, job,
            {v1::CAUSE_NODE_LOST,
             absl::StrCat("rank ", killed->rank(), " on ", host,
                          " was ended by its worker, not by this controller"),
             host});
      return;
    }
  }
  if (job.state == v1::JOB_STATE_RUNNING &&
      std::all_of(job.ranks.begin(), job.ranks.end(), HasEnded)) {
    // All well so far; the sweeps' proofs must come in time.
    const bool settled = std::all_of(job.nodes.begin(), job.nodes.end(),
                                     [](const NodeRun& node) { return node.settled(); });
    if (!settled) {
      job.grace = GraceOf(c.state(), job);
      c.StartTimer(job, TimerKind::kStop, job.grace + c.state().limits.verify_margin);
    }
  }
  EndIfSettled(c, job);
}

void OnLaunchTimeout(Context& c, JobRun& job, TimerKind kind) {
  const bool preparing = kind == TimerKind::kPrepare;
  if (job.state != (preparing ? v1::JOB_STATE_PREPARING : v1::JOB_STATE_STARTING)) return;
  const auto limit = preparing ? c.state().limits.prepare : c.state().limits.start;
  std::string hosts;
  std::string first;
  for (size_t i = 0; i < job.nodes.size(); ++i) {
    const bool late =
        preparing ? !job.nodes[i].reached
                  : std::any_of(job.ranks.begin(), job.ranks.end(), [&](const auto& status) {
                      return job.plan->ranks(static_cast<int>(status.rank())).node() == i &&
                             !HasRun(status);
                    });
    if (!late) continue;
    if (first.empty()) first = job.nodes[i].host.host();
    absl::StrAppend(&hosts, hosts.empty() ? "" : ", ", job.nodes[i].host.host());
  }
  Break(c, job,
        {v1::CAUSE_LAUNCH_FAILED,
         absl::StrCat(hosts, " did not ", preparing ? "prepare" : "start", " the ranks within ",
                      limit.count() / 1000.0, " s"),
         first});
}

}  // namespace muster::engine
