#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/v1/control.pb.h"
#include "muster/v1/job.pb.h"
#include "muster/v1/worker.pb.h"

// What the store keeps, as plain values: the rows of schema.cc. It knows nothing of the engine.

namespace muster::store {

struct NodeRecord {
  v1::Host host;
  uint64_t generation = 0;
  v1::Goal goal = v1::GOAL_UNSPECIFIED;
  int64_t grace_ms = 0;
  std::string stop_reason;
  std::optional<v1::EndReport> end;
  std::optional<std::string> unverified;  // why
  std::string boot_id;
  std::optional<int64_t> clock_offset_ns;
  std::optional<int64_t> clock_uncertainty_ns;
};

// A job with its newest attempt. `ranks` are written one by one (see Batch) and read with the job.
struct JobRecord {
  uint64_t id = 0;
  std::string name;
  v1::JobState state = v1::JOB_STATE_QUEUED;
  bool open = true;
  uint32_t attempt = 0;
  int64_t submitted_ns = 0;
  int64_t started_ns = 0;
  int64_t ended_ns = 0;
  uint32_t master_port = 0;
  std::string output_dir;
  v1::JobSpec spec;  // secrets masked
  std::optional<v1::Plan> plan;
  std::optional<v1::Outcome> stop;  // why it is being stopped
  int64_t grace_ms = 0;
  uint32_t save_signal = 0;
  std::optional<v1::Outcome> outcome;
  std::vector<NodeRecord> nodes;
  std::vector<v1::RankStatus> ranks;
  uint64_t last_sequence = 0;  // of its events; read only
};

struct RankRecord {
  uint64_t job = 0;
  uint32_t attempt = 0;
  v1::RankStatus status;
};

struct EventRecord {
  uint64_t job = 0;
  v1::JobEvent event;
};

struct NodeHistoryRecord {
  std::string host;
  int64_t time_ns = 0;
  v1::LinkState state = v1::LINK_STATE_UNSPECIFIED;
  std::string text;
};

// What one commit makes durable, all or nothing, in this order. `jobs` without their ranks.
struct Batch {
  std::vector<JobRecord> jobs;
  std::vector<RankRecord> ranks;
  std::vector<EventRecord> events;
  std::vector<NodeHistoryRecord> node_history;
  std::vector<v1::NodeCheck> node_checks;
  std::vector<uint64_t> closed;  // jobs that are no longer open

  bool empty() const {
    return jobs.empty() && ranks.empty() && events.empty() && node_history.empty() &&
           node_checks.empty() && closed.empty();
  }
};

}  // namespace muster::store
