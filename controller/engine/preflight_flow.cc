#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/engine/flows.h"
#include "controller/engine/outcome.h"
#include "controller/engine/rank_spec.h"
#include "controller/plan/planner.h"
#include "controller/preflight/probe_plan.h"

namespace muster::engine {
namespace {

bool InChecks(const JobRun& job) {
  return job.state == v1::JOB_STATE_PLANNING || job.state == v1::JOB_STATE_PREFLIGHT;
}

bool AllUp(const Context& c, const JobRun& job) {
  return std::all_of(job.nodes.begin(), job.nodes.end(),
                     [&](const NodeRun& node) { return c.IsUp(node.host.host()); });
}

std::string HostList(const std::vector<std::string>& hosts) {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < hosts.size() && i < kShown; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", hosts[i]);
  }
  if (hosts.size() > kShown) absl::StrAppend(&text, " and ", hosts.size() - kShown, " more");
  return text;
}

// Slots found on the nodes go into the inventory, then the planner decides.
void MakePlanFromHellos(Context& c, JobRun& job) {
  v1::JobSpec spec = job.spec;
  for (auto& host : *spec.mutable_inventory()->mutable_hosts()) {
    const auto node = FindNode(job, host.host());
    if (!node || host.has_slots()) continue;
    const int devices = c.state().links[host.host()].hello.devices_size();
    if (devices == 0) {
      Reject(c, job, v1::CAUSE_INVALID,
             absl::StrCat(job.spec.inventory().source(), ":", host.line(), ": ", host.host(),
                          " has no devices, so its number of slots is unknown; write slots=N"),
             host.host());
      return;
    }
    host.set_slots(static_cast<uint32_t>(devices));
  }
  auto plan = plan::MakePlan(spec);
  if (!plan.ok()) {
    Reject(c, job, v1::CAUSE_INVALID, std::string(plan.status().message()));
    return;
  }
  job.spec = std::move(spec);
  job.plan = *std::move(plan);
  job.name = job.plan->name();
  job.nodes.clear();
  for (auto& host : HostsOf(job)) job.nodes.emplace_back().host = std::move(host);
  for (const auto& warning : job.plan->warnings()) c.Emit(job, "note", warning, "warning");
  c.Do(WritePlan{job.id});
}

void SendProbes(Context& c, JobRun& job) {
  for (size_t i = 0; i < job.nodes.size(); ++i) {
    NodeRun& node = job.nodes[i];
    if (node.probe_id != 0 || !c.IsUp(node.host.host())) continue;
    node.probe_id = ++c.state().last_probe_id;
    node.probe_sent_ns = c.now_ns();
    v1::AttachRequest message;
    *message.mutable_probe() = preflight::MakeProbe(job.spec, *job.plan, static_cast<uint32_t>(i));
    message.mutable_probe()->set_probe_id(node.probe_id);
    *message.mutable_probe()->mutable_id() = MakeAttemptId(c.state(), job);
    c.Do(Send{node.host.host(), std::move(message)});
  }
}

std::vector<preflight::NodeFacts> Facts(Context& c, const JobRun& job) {
  std::vector<preflight::NodeFacts> facts;
  for (size_t i = 0; i < job.nodes.size(); ++i) {
    const NodeRun& node = job.nodes[i];
    preflight::NodeFacts& fact = facts.emplace_back();
    fact.host = node.host.host();
    fact.hello = c.state().links[fact.host].hello;
    fact.probe = *node.probe;
    fact.clock = node.clock;
    for (const auto& rank : job.plan->ranks()) {
      if (rank.node() == i && rank.has_device()) fact.devices.push_back(rank.device());
    }
  }
  return facts;
}

// All probes are in: compare, and go on or refuse.
void Compare(Context& c, JobRun& job) {
  preflight::Options options;
  options.skip = {job.spec.skip_checks().begin(), job.spec.skip_checks().end()};
  options.controller_version = c.state().version;
  options.working_dir = job.spec.working_dir();
  if (job.plan->argv_size() > 0) options.program = job.plan->argv(0);
  const auto findings = preflight::Check(Facts(c, job), options);
  std::string errors;
  std::string host;
  for (const auto& finding : findings) {
    const std::string line = ToLine(finding);
    c.Emit(job, "finding", line, SeverityName(finding.severity), finding.host);
    if (finding.severity != preflight::Severity::kError) continue;
    if (errors.empty()) host = finding.host;
    absl::StrAppend(&errors, errors.empty() ? "" : "\n", line);
  }
  if (!errors.empty()) {
    Reject(c, job, v1::CAUSE_PREFLIGHT_FAILED, errors, host);
    return;
  }
  const v1::ProbeResult& head = *job.nodes.front().probe;
  if (head.port() == 0) {  // with the check of the port skipped: still no rank could meet another
    Reject(c, job, v1::CAUSE_PREFLIGHT_FAILED,
           absl::StrCat("the head ", job.nodes.front().host.host(),
                        " could hold no port for the ranks: ", head.port_error()),
           job.nodes.front().host.host());
    return;
  }
  job.master_port = head.port();
  if (const auto status = ValidateRankSpecs(c.state(), job); !status.ok()) {
    Reject(c, job, v1::CAUSE_INVALID, std::string(status.message()));
    return;
  }
  c.CancelTimer(job, TimerKind::kProbe);
  if (c.Advance(job, JobInput::kChecked, "preparing the ranks on every node")) {
    BeginPreparing(c, job);
  }
}

// An attempt that was stopped too late on a node that is back: its end comes first.
bool WaitsForOldRanks(const Context& c, const JobRun& job) {
  for (const auto& [id, other] : c.state().jobs) {
    if (other.id == job.id || other.forgotten || !IsTerminal(other.state)) continue;
    for (const auto& node : other.nodes) {
      if (node.goal == v1::GOAL_STOPPED && !node.end && FindNode(job, node.host.host()))
        return true;
    }
  }
  return false;
}

}  // namespace

void BeginPlanning(Context& c, JobRun& job) {
  job.nodes.clear();
  job.probing = false;
  for (auto& host : HostsOf(job)) job.nodes.emplace_back().host = std::move(host);
  for (const auto& node : job.nodes) c.Dial(node.host, job.spec.default_transport());
  c.StartTimer(job, TimerKind::kConnect, c.state().limits.connect);
  ContinueChecks(c, job);
}

void ContinueChecks(Context& c, JobRun& job) {
  if (job.state == v1::JOB_STATE_PLANNING) {
    if (!job.plan) {
      if (!AllUp(c, job)) return;
      MakePlanFromHellos(c, job);
      if (job.state != v1::JOB_STATE_PLANNING) return;  // rejected
    }
    const std::string text =
        absl::StrCat("preflight of ", job.nodes.size(), job.nodes.size() == 1 ? " node" : " nodes");
    if (!c.Advance(job, JobInput::kPlanned, text)) return;
  }
  if (job.state != v1::JOB_STATE_PREFLIGHT) return;
  SendProbes(c, job);
  if (!AllUp(c, job)) return;
  if (!job.probing) {
    job.probing = true;
    c.CancelTimer(job, TimerKind::kConnect);
    c.StartTimer(job, TimerKind::kProbe, c.state().limits.probe);
  }
  const bool answered = std::all_of(job.nodes.begin(), job.nodes.end(),
                                    [](const NodeRun& node) { return node.probe.has_value(); });
  if (answered && !WaitsForOldRanks(c, job)) Compare(c, job);
}

void Reject(Context& c, JobRun& job, v1::Cause cause, const std::string& message,
            const std::string& host) {
  job.outcome = MakeOutcome(cause, message, host);
  c.CancelTimer(job, TimerKind::kConnect);
  c.CancelTimer(job, TimerKind::kProbe);
  if (c.Advance(job, JobInput::kRejected, message)) EndJob(c, job);
}

void OnProbeAnswered(Context& c, const ProbeAnswered& event) {
  for (auto& [id, job] : c.state().jobs) {
    if (!InChecks(job)) continue;
    const auto index = FindNode(job, event.host);
    if (!index || job.nodes[*index].probe_id != event.result.probe_id()) continue;
    NodeRun& node = job.nodes[*index];
    node.probe = event.result;
    node.boot_id = c.state().links[event.host].hello.boot_id();
    const int64_t round_trip = c.now_ns() - node.probe_sent_ns;
    if (round_trip >= 0) {  // else our clock jumped meanwhile
      node.clock = preflight::ClockOffset{
          event.result.realtime_ns() - node.probe_sent_ns - round_trip / 2, round_trip / 2};
    }
    ContinueChecks(c, job);
    return;
  }
}

void OnChecksTimeout(Context& c, JobRun& job, TimerKind kind) {
  if (!InChecks(job)) return;
  std::vector<std::string> hosts;
  std::string details;
  for (const auto& node : job.nodes) {
    const std::string& host = node.host.host();
    const bool silent = kind == TimerKind::kConnect ? !c.IsUp(host) : !node.probe.has_value();
    if (!silent) continue;
    hosts.push_back(host);
    const auto link = c.state().links.find(host);
    const std::string error = link == c.state().links.end() ? "" : link->second.error;
    absl::StrAppend(&details, "\n", host, ": ", error.empty() ? "no answer" : error);
  }
  if (hosts.empty()) {
    // Every node has answered; what is missing is the end of an older job on one of them.
    Reject(c, job, v1::CAUSE_PREFLIGHT_FAILED,
           "ranks of an earlier job on these hosts could not be stopped in time; see muster nodes");
    return;
  }
  const auto limit =
      kind == TimerKind::kConnect ? c.state().limits.connect : c.state().limits.probe;
  const char* const what = kind == TimerKind::kConnect
                               ? " did not say hello within "
                               : " did not answer the preflight probe within ";
  Reject(c, job, v1::CAUSE_PREFLIGHT_FAILED,
         absl::StrCat(HostList(hosts), what, limit.count() / 1000.0, " s", details), hosts.front());
}

}  // namespace muster::engine
