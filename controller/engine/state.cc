#include "controller/engine/state.h"

#include <absl/strings/str_cat.h>

#include <cstdlib>
#include <utility>

namespace muster::engine {

JobRun Durable(JobRun job) {
  for (auto& node : job.nodes) {
    node.reached = false;
    node.probe_id = 0;
    node.probe_sent_ns = 0;
    node.probe.reset();
    node.nobody_ns = 0;
    node.absent.clear();
    node.twin.clear();
  }
  job.waits_for.clear();
  job.probing = false;
  // Asked again: the log organ counts what is on disk.
  job.logs_open = false;
  job.logs_complete = false;
  return job;
}

int64_t SureClockOffset(const NodeRun& node) {
  if (!node.clock || std::abs(node.clock->offset_ns) <= node.clock->uncertainty_ns) return 0;
  return node.clock->offset_ns;
}

v1::AttemptId MakeAttemptId(const State& state, const JobRun& job) {
  v1::AttemptId id;
  id.set_controller_id(state.controller_id);
  id.set_job_id(job.check_only ? absl::StrCat("check-", job.id - kFirstCheck)
                               : absl::StrCat(job.id));
  id.set_attempt(job.attempt);
  return id;
}

std::optional<size_t> FindNode(const JobRun& job, const std::string& host) {
  for (size_t i = 0; i < job.nodes.size(); ++i) {
    if (job.nodes[i].host.host() == host) return i;
  }
  return std::nullopt;
}

std::vector<v1::Host> HostsOf(const JobRun& job) {
  std::vector<v1::Host> hosts;
  if (job.plan) {
    for (const auto& node : job.plan->nodes()) hosts.push_back(node.host());
    return hosts;
  }
  for (const auto& host : job.spec.inventory().hosts()) {
    if (host.spare()) continue;
    if (job.spec.nnodes() != 0 && hosts.size() == job.spec.nnodes()) break;
    hosts.push_back(host);
  }
  return hosts;
}

JobRun* FindRun(State& state, uint64_t id) {
  auto& runs = id >= kFirstCheck ? state.checks : state.jobs;
  const auto found = runs.find(id);
  return found == runs.end() ? nullptr : &found->second;
}

milliseconds GraceOf(const State& state, const JobRun& job) {
  if (!job.spec.has_grace()) return state.limits.default_grace;
  return milliseconds(job.spec.grace().seconds() * 1000 + job.spec.grace().nanos() / 1'000'000);
}

}  // namespace muster::engine
