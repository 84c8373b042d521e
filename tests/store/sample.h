#pragma once

#include <string>

#include "controller/store/records.h"

namespace muster::testing {

inline store::JobRecord SampleJob(uint64_t id, const std::string& name = "train") {
  store::JobRecord job;
  job.id = id;
  job.name = name;
  job.state = v1::JOB_STATE_RUNNING;
  job.submitted_ns = 100;
  job.started_ns = 200;
  job.master_port = 29500;
  job.output_dir = "/out/" + name;
  job.spec.add_command("python3");
  job.plan.emplace().set_world(2);
  job.grace_ms = 2000;
  job.save_signal = 15;
  store::NodeRecord& node = job.nodes.emplace_back();
  node.host.set_host("n1");
  node.generation = 2;
  node.goal = v1::GOAL_RUNNING;
  node.boot_id = "boot";
  node.clock_offset_ns = -5;
  node.clock_uncertainty_ns = 7;
  store::NodeRecord& gone = job.nodes.emplace_back();
  gone.host.set_host("n2");
  gone.generation = 3;
  gone.goal = v1::GOAL_STOPPED;
  gone.grace_ms = 2000;
  gone.stop_reason = "stopped by the user";
  gone.unverified = "it can't be reached";
  gone.end.emplace().set_verified(true);
  return job;
}

inline v1::JobEvent SampleEvent(uint64_t sequence) {
  v1::JobEvent event;
  event.set_sequence(sequence);
  event.set_kind("note");
  event.set_text("event " + std::to_string(sequence));
  return event;
}

inline store::RankRecord SampleRank(uint64_t job, uint32_t rank, v1::RankState state) {
  store::RankRecord record;
  record.job = job;
  record.status.set_rank(rank);
  record.status.set_state(state);
  return record;
}

}  // namespace muster::testing
