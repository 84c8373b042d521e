#include "controller/engine/asking.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <string>
#include <utility>

#include "controller/engine/text.h"
#include "controller/engine/transitions.h"
#include "controller/plan/planner.h"
#include "controller/preflight/network_plan.h"
#include "controller/preflight/probe_plan.h"
#include "controller/stage/mapping.h"

namespace muster::engine {
namespace {

constexpr milliseconds kMostForOneQuestion(5'000);

milliseconds ToMilliseconds(const google::protobuf::Duration& duration) {
  return milliseconds(duration.seconds() * 1000 + duration.nanos() / 1'000'000);
}

void SetDuration(google::protobuf::Duration& out, milliseconds value) {
  out.set_seconds(value.count() / 1000);
  out.set_nanos(static_cast<int32_t>(value.count() % 1000 * 1'000'000));
}

// 16 bytes that no other preflight has: a fingerprint of who asks, for what, and when.
std::string Token(const State& state, const JobRun& job, int64_t now_ns) {
  const std::string text = absl::StrCat(state.controller_id, "/", job.id, "/", now_ns);
  std::string token;
  for (const uint64_t seed : {0xcbf29ce484222325ull, 0x84222325cbf29ce4ull}) {
    uint64_t hash = seed;  // FNV-1a
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
    for (unsigned shift = 0; shift < 64; shift += 8)
      token += static_cast<char>(hash >> shift & 0xff);
  }
  return token;
}

std::string StageFolderOn(const State& state, const JobRun& job, const NodeRun& node) {
  return stage::FolderOn(job.spec.staged(), state.links.at(node.host.host()).hello);
}

bool SameWorker(const v1::WorkerHello& a, const v1::WorkerHello& b) {
  return !a.boot_id().empty() && a.boot_id() == b.boot_id() && a.net_ns() == b.net_ns() &&
         a.pid() == b.pid() && a.state_dir() == b.state_dir();
}

}  // namespace

absl::StatusOr<v1::Plan> PlanFor(const v1::JobSpec& spec) {
  if (spec.command_size() > 0) return plan::MakePlan(spec);
  v1::JobSpec hosts = spec;
  hosts.add_command("true");
  auto plan = plan::MakePlan(hosts);
  if (plan.ok()) plan->clear_argv();
  return plan;
}

milliseconds ConnectTimeout(const Context& c, const JobRun& job) {
  return job.spec.has_check_timeout() ? ToMilliseconds(job.spec.check_timeout())
                                      : c.state().limits.connect;
}

milliseconds ProbeTimeout(const Context& c, const JobRun& job) {
  return job.spec.has_check_timeout() ? ToMilliseconds(job.spec.check_timeout())
                                      : c.state().limits.probe;
}

void FindTwins(const Context& c, JobRun& job) {
  const auto& links = c.state().links;
  for (NodeRun& node : job.nodes) {
    const auto mine = links.find(node.host.host());
    if (!node.absent.empty() || mine == links.end() || mine->second.hello.boot_id().empty() ||
        c.IsUp(node.host.host())) {
      continue;
    }
    for (const NodeRun& other : job.nodes) {
      if (&other == &node || !c.IsUp(other.host.host())) continue;
      if (!SameWorker(mine->second.hello, links.at(other.host.host()).hello)) continue;
      node.twin = other.host.host();
      node.absent = absl::StrCat("its worker is that of ", node.twin);
    }
  }
}

bool AllConnected(const Context& c, const JobRun& job) {
  return std::all_of(job.nodes.begin(), job.nodes.end(), [&](const NodeRun& node) {
    return !node.absent.empty() || c.IsUp(node.host.host());
  });
}

bool AllAnswered(const JobRun& job) {
  return std::all_of(job.nodes.begin(), job.nodes.end(), [](const NodeRun& node) {
    return !node.absent.empty() || node.probe.has_value();
  });
}

// Asks for leftovers, and for nothing else.
void SendSweeps(Context& c, JobRun& job) {
  for (NodeRun& node : job.nodes) {
    if (!node.absent.empty() || node.probe_id != 0) continue;
    node.probe_id = ++c.state().last_probe_id;
    node.probe_sent_ns = c.now_ns();
    v1::AttachRequest message;
    v1::Probe& probe = *message.mutable_probe();
    probe.set_probe_id(node.probe_id);
    *probe.mutable_id() = MakeAttemptId(c.state(), job);
    *probe.mutable_leftovers() = *job.sweep;
    for (const auto& [id, other] : c.state().jobs) {
      if (!IsTerminal(other.state)) probe.mutable_leftovers()->add_live_jobs(absl::StrCat(id));
    }
    c.Do(Send{node.host.host(), std::move(message)});
  }
}

void SendProbes(Context& c, JobRun& job) {
  if (job.sweep) {
    SendSweeps(c, job);
    return;
  }
  std::vector<bool> absent;
  absent.reserve(job.nodes.size());
  for (const NodeRun& node : job.nodes) absent.push_back(!node.absent.empty());
  const auto nonce = static_cast<uint64_t>(c.now_ns()) ^ job.id;
  const auto network = preflight::NetworkProbes(job.spec, *job.plan, absent,
                                                Token(c.state(), job, c.now_ns()), nonce);
  job.probe_ports = absl::StrJoin(preflight::ProbePorts(job.spec, nonce), ", ");
  const milliseconds limit = std::min(kMostForOneQuestion, ProbeTimeout(c, job) * 3 / 4);
  for (size_t i = 0; i < job.nodes.size(); ++i) {
    NodeRun& node = job.nodes[i];
    if (absent[i] || node.probe_id != 0) continue;
    node.probe_id = ++c.state().last_probe_id;
    node.probe_sent_ns = c.now_ns();
    v1::AttachRequest message;
    v1::Probe& probe = *message.mutable_probe();
    probe = preflight::MakeProbe(job.spec, *job.plan, static_cast<uint32_t>(i));
    if (job.spec.has_staged()) {
      stage::MapProbe(job.spec.staged(), StageFolderOn(c.state(), job, node), probe);
    }
    probe.set_probe_id(node.probe_id);
    *probe.mutable_id() = MakeAttemptId(c.state(), job);
    SetDuration(*probe.mutable_time_limit(), limit);
    probe.set_release_port(job.check_only);
    if (job.nodes.size() > 1 || node.host.has_iface()) *probe.mutable_network() = network[i];
    c.Do(Send{node.host.host(), std::move(message)});
  }
}

std::vector<preflight::NodeFacts> FactsOf(Context& c, const JobRun& job) {
  std::vector<preflight::NodeFacts> facts;
  for (size_t i = 0; i < job.nodes.size(); ++i) {
    const NodeRun& node = job.nodes[i];
    preflight::NodeFacts& fact = facts.emplace_back();
    fact.host = node.host.host();
    fact.absent = node.absent;
    fact.twin = node.twin;
    if (!job.plan) continue;
    fact.data_addr = job.plan->nodes(static_cast<int>(i)).data_addr();
    for (const auto& rank : job.plan->ranks()) {
      if (rank.node() == i && rank.has_device()) fact.devices.push_back(rank.device());
    }
    fact.needs_devices = preflight::NeedsDevices(*job.plan, static_cast<uint32_t>(i));
    if (!node.absent.empty()) continue;
    fact.hello = c.state().links[fact.host].hello;
    if (node.probe) fact.probe = *node.probe;
    if (job.spec.has_staged())
      stage::UnmapAnswer(job.spec.staged(), StageFolderOn(c.state(), job, node), fact.probe);
    fact.clock = node.clock;
  }
  return facts;
}

v1::Finding ToProto(const preflight::Finding& finding) {
  v1::Finding out;
  out.set_check(finding.check);
  out.set_severity(SeverityName(finding.severity));
  out.set_host(finding.host);
  // The words of a command may be any bytes.
  out.set_value(Printable(finding.value));
  out.set_majority(Printable(finding.majority));
  out.set_fix(Printable(finding.fix));
  return out;
}

std::vector<v1::NodeCheck> NodeChecks(Context& c, const JobRun& job,
                                      const std::vector<preflight::Finding>& findings) {
  std::vector<v1::NodeCheck> checks;
  for (const NodeRun& node : job.nodes) {
    v1::NodeCheck& check = checks.emplace_back();
    check.set_host(node.host.host());
    check.set_time_ns(c.now_ns());
    if (!job.check_only) check.set_job_id(absl::StrCat(job.id));
    for (const auto& finding : findings) {
      if (finding.host == check.host()) *check.add_findings() = ToProto(finding);
    }
    if (!node.absent.empty()) continue;
    *check.mutable_hello() = c.state().links[check.host()].hello;
    if (!node.probe) continue;
    *check.mutable_result() = *node.probe;
    // Its findings say what did not work; hundreds of connections that did are not kept.
    check.mutable_result()->mutable_network()->clear_connected();
    check.mutable_result()->mutable_network()->clear_heard();
    if (!node.clock) continue;
    check.set_has_clock(true);
    check.set_clock_offset_ns(node.clock->offset_ns);
    check.set_clock_uncertainty_ns(node.clock->uncertainty_ns);
  }
  return checks;
}

}  // namespace muster::engine
