#include "controller/runtime/records.h"

#include <absl/strings/str_cat.h>

#include "controller/engine/outcome.h"
#include "controller/store/secrets.h"

namespace muster::runtime {
namespace {

store::NodeRecord ToRecord(const engine::NodeRun& node) {
  store::NodeRecord record;
  record.host = node.host;
  record.generation = node.generation;
  record.goal = node.goal;
  record.grace_ms = node.grace.count();
  record.stop_reason = node.stop_reason;
  record.end = node.end;
  if (node.unverified) record.unverified = node.unverified_why;
  record.boot_id = node.boot_id;
  if (node.clock) {
    record.clock_offset_ns = node.clock->offset_ns;
    record.clock_uncertainty_ns = node.clock->uncertainty_ns;
  }
  return record;
}

engine::NodeRun FromRecord(const store::NodeRecord& record) {
  engine::NodeRun node;
  node.host = record.host;
  node.generation = record.generation;
  node.goal = record.goal;
  node.grace = engine::milliseconds(record.grace_ms);
  node.stop_reason = record.stop_reason;
  node.end = record.end;
  node.unverified = record.unverified.has_value();
  node.unverified_why = record.unverified.value_or("");
  node.boot_id = record.boot_id;
  if (record.clock_offset_ns && record.clock_uncertainty_ns) {
    node.clock = preflight::ClockOffset{*record.clock_offset_ns, *record.clock_uncertainty_ns};
  }
  return node;
}

// On the controller's clock, as far as the node's offset is known.
int64_t EndedNs(const store::JobRecord& record, const v1::RankView& rank) {
  if (!rank.status().has_exit()) return 0;
  const size_t node = rank.plan().node();
  const int64_t offset =
      node < record.nodes.size() ? record.nodes[node].clock_offset_ns.value_or(0) : 0;
  return rank.status().exit().ended_ns() - offset;
}

v1::NodeEnd EndView(const store::NodeRecord& node) {
  v1::NodeEnd view;
  view.set_host(node.host.host());
  if (node.end) {
    view.set_clean(engine::IsClean(*node.end));
    *view.mutable_report() = *node.end;
  } else {
    view.mutable_report()->add_notes("unverified: " + *node.unverified);
  }
  return view;
}

}  // namespace

store::JobRecord ToRecord(const engine::JobRun& job) {
  store::JobRecord record;
  record.id = job.id;
  record.name = job.name;
  record.state = job.state;
  record.open = !job.forgotten;
  record.attempt = job.attempt;
  record.submitted_ns = job.submitted_ns;
  record.started_ns = job.started_ns;
  record.ended_ns = job.ended_ns;
  record.master_port = job.master_port;
  record.output_dir = job.output_dir;
  record.spec = store::Mask(job.spec);
  record.plan = job.plan;
  if (job.stop) {
    v1::Outcome& stop = record.stop.emplace();
    stop.set_cause(job.stop->cause);
    stop.set_message(job.stop->message);
    stop.set_host(job.stop->host);
  }
  record.grace_ms = job.grace.count();
  record.save_signal = job.save_signal;
  record.outcome = job.outcome;
  for (const auto& node : job.nodes) record.nodes.push_back(ToRecord(node));
  return record;
}

engine::JobRun FromRecord(const store::JobRecord& record) {
  engine::JobRun job;
  job.id = record.id;
  job.state = record.state;
  job.spec = record.spec;
  job.plan = record.plan;
  job.name = record.name;
  job.output_dir = record.output_dir;
  job.attempt = record.attempt;
  job.submitted_ns = record.submitted_ns;
  job.started_ns = record.started_ns;
  job.ended_ns = record.ended_ns;
  job.master_port = record.master_port;
  for (const auto& node : record.nodes) job.nodes.push_back(FromRecord(node));
  job.ranks = record.ranks;
  job.last_sequence = record.last_sequence;
  if (record.stop) job.stop = {record.stop->cause(), record.stop->message(), record.stop->host()};
  job.grace = engine::milliseconds(record.grace_ms);
  job.save_signal = record.save_signal;
  job.outcome = record.outcome;
  return job;
}

v1::Job ToView(const store::JobRecord& record) {
  v1::Job view;
  view.set_id(absl::StrCat(record.id));
  view.set_state(record.state);
  view.set_attempt(record.attempt);
  *view.mutable_spec() = record.spec;
  if (record.plan) {
    *view.mutable_plan() = *record.plan;
  } else {
    view.mutable_plan()->set_name(record.name);
  }
  view.set_output_dir(record.output_dir);
  view.set_submitted_ns(record.submitted_ns);
  view.set_started_ns(record.started_ns);
  view.set_ended_ns(record.ended_ns);
  if (record.outcome) *view.mutable_outcome() = *record.outcome;
  view.set_master_port(record.master_port);
  for (const auto& status : record.ranks) {
    v1::RankView& rank = *view.add_ranks();
    if (record.plan && status.rank() < static_cast<uint32_t>(record.plan->ranks_size())) {
      *rank.mutable_plan() = record.plan->ranks(static_cast<int>(status.rank()));
      rank.set_host(record.plan->nodes(static_cast<int>(rank.plan().node())).host().host());
    }
    *rank.mutable_status() = status;
    rank.set_ended_ns(EndedNs(record, rank));
  }
  for (const auto& node : record.nodes) {
    if (node.end || node.unverified) *view.add_ends() = EndView(node);
  }
  return view;
}

}  // namespace muster::runtime
