#include <absl/strings/str_cat.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "controller/engine/asking.h"
#include "controller/engine/flows.h"
#include "controller/engine/outcome.h"
#include "controller/engine/rank_spec.h"
#include "controller/engine/text.h"
#include "controller/preflight/fold.h"

namespace muster::engine {
namespace {

constexpr uint32_t kMostBreaks = 3;

bool InChecks(const JobRun& job) {
  return !job.forgotten &&
         (job.state == v1::JOB_STATE_PLANNING || job.state == v1::JOB_STATE_PREFLIGHT);
}

bool AnyAbsent(const JobRun& job) {
  return std::any_of(job.nodes.begin(), job.nodes.end(),
                     [](const NodeRun& node) { return !node.absent.empty(); });
}

void EndCheck(Context& c, JobRun& check, const std::vector<preflight::Finding>& findings) {
  c.CancelTimer(check, TimerKind::kConnect);
  c.CancelTimer(check, TimerKind::kProbe);
  CheckDone done{check.id, {}};
  for (const auto& finding : findings) *done.response.add_findings() = ToProto(finding);
  for (auto& node : NodeChecks(c, check, findings)) *done.response.add_nodes() = std::move(node);
  done.response.set_duration_ns(c.now_ns() - check.submitted_ns);
  c.Do(std::move(done));
  check.forgotten = true;
}

// How the user says the number of slots, where the host stands.
std::string SlotsOf(const JobRun& job, const v1::Host& host) {
  return job.spec.inventory().source() == "--host" ? absl::StrCat("--host ", host.host(), ":N")
                                                   : "slots=N";
}

// Slots found on the nodes go into the inventory, then the planner decides. False: the job has been
// refused. Without a plan (and without an answer from some host) there is nothing to ask.
bool MakePlanFromHellos(Context& c, JobRun& job) {
  v1::JobSpec spec = job.spec;
  for (auto& host : *spec.mutable_inventory()->mutable_hosts()) {
    const auto node = FindNode(job, host.host());
    if (!node || host.has_slots()) continue;
    const int devices = c.state().links[host.host()].hello.devices_size();
    const bool guess = job.check_only || !job.nodes[*node].absent.empty();
    if (devices == 0 && !guess) {
      Reject(c, job, v1::CAUSE_INVALID,
             absl::StrCat(job.spec.inventory().source(), ":", host.line(), ": ", host.host(),
                          " has no devices, so its number of slots is unknown; write ",
                          SlotsOf(job, host)),
             host.host());
      return false;
    }
    host.set_slots(static_cast<uint32_t>(std::max(devices, 1)));
  }
  auto plan = PlanFor(spec);
  if (!plan.ok()) {
    if (AnyAbsent(job)) return true;  // its slots would have counted
    Reject(c, job, v1::CAUSE_INVALID, std::string(plan.status().message()));
    return false;
  }
  job.spec = std::move(spec);
  job.plan = *std::move(plan);
  job.name = job.plan->name();
  // Those that are absent stay so; the plan has the same hosts in the same order.
  std::vector<NodeRun> before = std::exchange(job.nodes, {});
  for (auto& host : HostsOf(job)) {
    NodeRun& node = job.nodes.emplace_back();
    node.host = std::move(host);
    for (const NodeRun& old : before) {
      if (old.host.host() != node.host.host()) continue;
      node.absent = old.absent;
      node.twin = old.twin;
    }
  }
  for (const auto& warning : job.plan->warnings()) c.Emit(job, "note", warning, "warning");
  if (!job.check_only) c.Do(WritePlan{job.id});
  return true;
}

// Each node's own interface on the way to the others, where the hostfile does not name one.
void ChooseInterfaces(JobRun& job) {
  for (size_t i = 0; i < job.nodes.size(); ++i) {
    const std::string& iface = job.nodes[i].probe->network().iface();
    if (iface != "lo") job.plan->mutable_nodes(static_cast<int>(i))->set_iface(iface);
  }
}

// All answers are in, or given up: compare, and go on or refuse.
void Compare(Context& c, JobRun& job) {
  if (job.sweep) {
    std::vector<preflight::Finding> absent;
    for (const NodeRun& node : job.nodes) {
      if (node.absent.empty()) continue;
      absent.push_back(
          {"connect", preflight::Severity::kError, node.host.host(), node.absent, "", ""});
    }
    EndCheck(c, job, absent);
    return;
  }
  preflight::Options options;
  options.skip = {job.spec.skip_checks().begin(), job.spec.skip_checks().end()};
  options.controller_version = c.state().version;
  options.working_dir = job.spec.working_dir();
  options.ports = job.probe_ports;
  if (job.plan && job.plan->argv_size() > 0) options.program = job.plan->argv(0);
  const auto findings = preflight::Check(FactsOf(c, job), options);
  c.Do(RememberChecks{NodeChecks(c, job, findings)});
  if (job.check_only) {
    EndCheck(c, job, findings);
    return;
  }
  std::vector<preflight::Finding> errors;
  for (const auto& finding : findings) {
    c.Emit(job, "finding", ToLine(finding), SeverityName(finding.severity), finding.host);
    if (finding.severity == preflight::Severity::kError) errors.push_back(finding);
  }
  if (!errors.empty()) {
    std::string text;
    for (const auto& folded : preflight::Fold(errors))
      absl::StrAppend(&text, text.empty() ? "" : "\n", ToLines(folded));
    Reject(c, job, v1::CAUSE_PREFLIGHT_FAILED, text, errors.front().host);
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
  ChooseInterfaces(job);
  if (const auto status = ValidateRankSpecs(c.state(), job); !status.ok()) {
    Reject(c, job, v1::CAUSE_INVALID, std::string(status.message()));
    return;
  }
  c.CancelTimer(job, TimerKind::kProbe);
  if (c.Advance(job, JobInput::kChecked, "preparing the ranks on every node")) {
    BeginPreparing(c, job);
  }
}

// A host came forward: the others get their time anew. Hundreds may log in one after the other.
void ExtendConnect(Context& c, JobRun& job) {
  if (job.probing || job.spec.has_check_timeout()) return;
  c.StartTimer(job, TimerKind::kConnect, ConnectTimeout(c, job));
}

// Counts the pushes of the worker, now and then and when all hosts are there.
void SayPushes(Context& c, JobRun& job) {
  constexpr int64_t kPause = 3'000'000'000;
  Pushes& pushes = job.pushes;
  if (pushes.begun == 0 || job.check_only) return;
  const bool all = AllConnected(c, job);
  if (!all && c.now_ns() - pushes.said_ns < kPause) return;
  pushes.said_ns = c.now_ns();
  if (all) {
    c.Emit(job, "note",
           absl::StrCat("pushed the worker to ", pushes.done, " of ", job.nodes.size(), " nodes"));
    pushes = {};
  } else {
    c.Emit(
        job, "note",
        absl::StrCat("pushing the worker to nodes that lack it: ", pushes.done, "/", pushes.begun));
  }
}

// An attempt that was stopped too late on a node that is back: its end comes first.
bool WaitsForOldRanks(const Context& c, const JobRun& job) {
  if (job.check_only) return false;
  for (const auto& [id, other] : c.state().jobs) {
    if (other.id == job.id || other.forgotten || !IsTerminal(other.state)) continue;
    for (const auto& node : other.nodes) {
      const auto mine = FindNode(job, node.host.host());
      if (node.goal == v1::GOAL_STOPPED && !node.end && mine && job.nodes[*mine].absent.empty())
        return true;
    }
  }
  return false;
}

// A break spoils what the others have said about that host: all are asked again once it is back.
void AskAnew(Context& c, JobRun& job) {
  for (NodeRun& node : job.nodes) {
    node.probe_id = 0;
    node.probe.reset();
  }
  job.probing = false;
  c.CancelTimer(job, TimerKind::kProbe);
  c.StartTimer(job, TimerKind::kConnect, ConnectTimeout(c, job));
}

// Errors that another try will not mend.
bool IsHopeless(const absl::Status& why) {
  return why.code() == absl::StatusCode::kFailedPrecondition ||
         why.code() == absl::StatusCode::kPermissionDenied ||
         why.code() == absl::StatusCode::kUnauthenticated ||
         why.code() == absl::StatusCode::kInvalidArgument;
}

// A daemon may be just starting: nobody is there only after a while, or as long as the user says.
bool NobodyListens(const Context& c, const JobRun& job, NodeRun& node, const absl::Status& why) {
  if (!absl::IsNotFound(why)) {
    node.nobody_ns = 0;
    return false;
  }
  if (node.nobody_ns == 0) node.nobody_ns = c.now_ns();
  return !job.spec.has_check_timeout() &&
         milliseconds((c.now_ns() - node.nobody_ns) / 1'000'000) >= c.state().limits.nobody;
}

}  // namespace

void BeginPlanning(Context& c, JobRun& job) {
  job.nodes.clear();
  job.probing = false;
  for (auto& host : HostsOf(job)) job.nodes.emplace_back().host = std::move(host);
  for (const auto& node : job.nodes) c.Dial(node.host, job.spec.default_transport());
  c.StartTimer(job, TimerKind::kConnect, ConnectTimeout(c, job));
  ContinueChecks(c, job);
}

void OnCheckRequested(Context& c, const CheckRequested& event) {
  JobRun& check = c.state().checks[event.id];
  check.id = event.id;
  check.check_only = true;
  check.spec = event.spec;
  check.plan = event.plan;
  check.sweep = event.sweep;
  check.submitted_ns = c.now_ns();
  if (c.Advance(check, JobInput::kScheduled, "planning")) BeginPlanning(c, check);
}

void ContinueChecks(Context& c, JobRun& job) {
  if (!InChecks(job)) return;
  if (job.probing) {  // else all links were up; one that breaks ends this
    if (AllAnswered(job) && !WaitsForOldRanks(c, job)) Compare(c, job);
    return;
  }
  FindTwins(c, job);
  if (job.state == v1::JOB_STATE_PLANNING) {
    if (!job.plan) {
      if (!AllConnected(c, job) || !MakePlanFromHellos(c, job)) return;
    }
    const std::string text =
        absl::StrCat("preflight of ", job.nodes.size(), job.nodes.size() == 1 ? " node" : " nodes");
    if (!c.Advance(job, JobInput::kPlanned, text)) return;
  }
  if (!AllConnected(c, job)) return;
  if (!job.plan) {
    Compare(c, job);
    return;
  }
  job.probing = true;
  SendProbes(c, job);
  c.CancelTimer(job, TimerKind::kConnect);
  c.StartTimer(job, TimerKind::kProbe, ProbeTimeout(c, job));
  if (AllAnswered(job) && !WaitsForOldRanks(c, job)) Compare(c, job);
}

void Reject(Context& c, JobRun& job, v1::Cause cause, const std::string& message,
            const std::string& host) {
  if (job.check_only) {
    EndCheck(c, job, {{"plan", preflight::Severity::kError, host, message, "", ""}});
    return;
  }
  job.outcome = MakeOutcome(cause, message, host);
  c.CancelTimer(job, TimerKind::kConnect);
  c.CancelTimer(job, TimerKind::kProbe);
  if (c.Advance(job, JobInput::kRejected, message)) EndJob(c, job);
}

void OnProbeAnswered(Context& c, const ProbeAnswered& event) {
  for (auto* const runs : {&c.state().jobs, &c.state().checks}) {
    for (auto& [id, job] : *runs) {
      if (!InChecks(job)) continue;
      const auto index = FindNode(job, event.host);
      if (!index || job.nodes[*index].probe_id != event.result.probe_id()) continue;
      NodeRun& node = job.nodes[*index];
      node.probe = event.result;
      node.boot_id = c.state().links[event.host].hello.boot_id();
      if (c.now_ns() >= node.probe_sent_ns) {  // else our clock jumped meanwhile
        const int64_t answered = event.result.realtime_ns();
        const int64_t received =
            event.result.received_ns() != 0 ? event.result.received_ns() : answered;
        node.clock = preflight::OffsetOf(node.probe_sent_ns, received, answered, c.now_ns());
      }
      ContinueChecks(c, job);
      return;
    }
  }
}

void OnPushBegan(Context& c, const PushBegan& event) {
  const auto link = c.state().links.find(event.host);
  if (link == c.state().links.end()) return;
  link->second.pushing = true;
  for (auto* const runs : {&c.state().jobs, &c.state().checks}) {
    for (auto& [id, job] : *runs) {
      if (!InChecks(job) || !FindNode(job, event.host)) continue;
      ++job.pushes.begun;
      SayPushes(c, job);
      ExtendConnect(c, job);
    }
  }
}

void OnLinkUpInChecks(Context& c, JobRun& job, NodeRun& node) {
  SayPushes(c, job);
  ExtendConnect(c, job);
  if (InChecks(job) && node.probe_id != 0) AskAnew(c, job);  // the worker was restarted
  ContinueChecks(c, job);
}

void OnLinkLostInChecks(Context& c, JobRun& job, NodeRun& node, const absl::Status& why,
                        bool was_up) {
  if (!InChecks(job) || !node.absent.empty()) return;
  if (why.code() == absl::StatusCode::kInvalidArgument && !job.check_only) {
    Reject(c, job, v1::CAUSE_INVALID,
           absl::StrCat(node.host.host(), ": ", std::string(why.message())), node.host.host());
    return;
  }
  if (IsHopeless(why) || NobodyListens(c, job, node, why)) {
    node.absent = Printable(std::string(why.message()));
    ContinueChecks(c, job);
    return;
  }
  if (!was_up) return;
  if (++job.breaks > kMostBreaks) {
    node.absent = absl::StrCat("its link breaks again and again (",
                               Printable(std::string(why.message())), ")");
  }
  AskAnew(c, job);
  ContinueChecks(c, job);
}

void OnChecksTimeout(Context& c, JobRun& job, TimerKind kind) {
  if (!InChecks(job)) return;
  const bool connect = kind == TimerKind::kConnect;
  const auto pushing = [&c](const NodeRun& node) {
    const auto link = c.state().links.find(node.host.host());
    return link != c.state().links.end() && link->second.pushing;
  };
  // A push has its own limit, and ends by LinkUp or LinkLost.
  if (connect && std::any_of(job.nodes.begin(), job.nodes.end(), pushing)) {
    ExtendConnect(c, job);
    if (!job.spec.has_check_timeout()) return;
  }
  const auto limit = connect ? ConnectTimeout(c, job) : ProbeTimeout(c, job);
  bool any = false;
  for (auto& node : job.nodes) {
    const std::string& host = node.host.host();
    if (!node.absent.empty() || (connect ? c.IsUp(host) : node.probe.has_value())) continue;
    const auto link = c.state().links.find(host);
    const std::string error = link == c.state().links.end() ? "" : link->second.error;
    node.absent = absl::StrCat(
        connect ? "did not say hello within " : "did not answer the preflight probe within ",
        limit.count() / 1000.0, " s", error.empty() ? "" : absl::StrCat(" (", error, ")"));
    any = true;
  }
  if (any) {
    ContinueChecks(c, job);
  } else if (!connect) {
    // Every node has answered; what is missing is the end of an older job on one of them.
    Reject(c, job, v1::CAUSE_PREFLIGHT_FAILED,
           "ranks of an earlier job on these hosts could not be stopped in time; see muster nodes");
  }
}

}  // namespace muster::engine
