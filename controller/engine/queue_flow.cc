#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "controller/engine/flows.h"

namespace muster::engine {
namespace {

// Who has a host, and in which way, for people.
using Taken = std::map<std::string, std::string>;

// Adds the hosts that the job keeps from later ones.
void Take(const Context& c, const JobRun& job, Taken& taken) {
  if (job.forgotten) return;
  const std::string who = absl::StrCat("job ", job.id, " (", job.name, ")");
  if (!IsTerminal(job.state)) {
    const bool queued = job.state == v1::JOB_STATE_QUEUED;
    for (const auto& host : HostsOf(job)) {
      taken.emplace(host.host(), absl::StrCat("which ", who, queued ? " waits for too" : " uses"));
    }
    return;
  }
  for (const auto& node : job.nodes) {
    if (node.goal != v1::GOAL_STOPPED || node.end || !c.IsUp(node.host.host())) continue;
    taken.emplace(node.host.host(), absl::StrCat("where ", who, " is still being stopped"));
  }
}

// Why the job can't have its hosts yet, or "".
std::string Blocker(const JobRun& job, const Taken& taken) {
  for (const auto& host : HostsOf(job)) {
    const auto it = taken.find(host.host());
    if (it != taken.end()) return absl::StrCat("waits for ", host.host(), ", ", it->second);
  }
  return "";
}

}  // namespace

void OnSubmitted(Context& c, const Submitted& event) {
  JobRun& job = c.state().jobs[event.job];
  job.id = event.job;
  job.spec = event.spec;
  job.plan = event.plan;
  job.name = event.plan ? event.plan->name() : event.name;
  job.output_dir = event.output_dir;
  job.submitted_ns = c.now_ns();
  c.Emit(job, "state", "queued");
  if (job.plan) {
    for (const auto& warning : job.plan->warnings()) c.Emit(job, "note", warning, "warning");
  }
  c.Persist(job);
}

void OnRecovered(Context& c, const Recovered& event) {
  for (const JobRun& recovered : event.jobs) {
    JobRun& job = c.state().jobs[recovered.id] = recovered;
    const auto state = Next(job.state, JobInput::kRecovered);
    if (!state.ok()) {
      c.ReportIllegal(&job, std::string(state.status().message()));
      continue;
    }
    job.state = *state;
    if (job.state == v1::JOB_STATE_QUEUED) {
      // Nothing was started yet: begin anew.
      job.nodes.clear();
      c.Emit(job, "state", "queued again: the controller was restarted");
      c.Persist(job);
      continue;
    }
    c.Do(OpenLogs{job.id});
    job.logs_open = true;
    for (auto& node : job.nodes) c.Dial(node.host, job.spec.default_transport());
    if (IsTerminal(job.state)) {
      for (const auto& node : job.nodes) {
        if (!node.end) c.Do(AbandonLogs{job.id, node.host.host()});
      }
      continue;
    }
    c.Emit(job, "note", "the controller was restarted and takes the job up again");
    for (auto& node : job.nodes) {
      if (!node.settled())
        c.StartTimer(job, TimerKind::kLost, c.state().limits.lost, node.host.host());
    }
    if (job.state == v1::JOB_STATE_STOPPING) {
      c.StartTimer(job, TimerKind::kStop, job.grace + c.state().limits.verify_margin);
    }
    ContinueRun(c, job);
  }
}

void Schedule(Context& c) {
  const bool any = std::any_of(c.state().jobs.begin(), c.state().jobs.end(), [](const auto& entry) {
    return entry.second.state == v1::JOB_STATE_QUEUED;
  });
  if (!any) return;
  Taken taken;
  for (auto& [id, job] : c.state().jobs) {
    if (job.state == v1::JOB_STATE_QUEUED) {
      std::string blocker = Blocker(job, taken);
      if (blocker.empty()) {
        if (c.Advance(job, JobInput::kScheduled, "planning")) BeginPlanning(c, job);
      } else if (blocker != job.waits_for) {
        c.Emit(job, "note", blocker);
        job.waits_for = std::move(blocker);
      }
    }
    Take(c, job, taken);
  }
}

}  // namespace muster::engine
