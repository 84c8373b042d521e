#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/preflight/checks.h"
#include "controller/stage/run.h"
#include "muster/v1/control.pb.h"
#include "muster/v1/job.pb.h"
#include "muster/v1/worker.pb.h"

// All that the engine knows, as plain values. Owned by the engine thread; reduce.h is the only
// thing that changes it.

namespace muster::engine {

using std::chrono::milliseconds;

// Time-outs and limits, fixed when the controller starts.
struct Limits {
  milliseconds connect{20'000};        // for all hosts to say hello, since one of them came forward
  milliseconds nobody{4'000};          // for a host to say hello that answers: nobody listens here
  milliseconds probe{20'000};          // ... and answer the preflight probe
  milliseconds prepare{60'000};        // ... and prepare its ranks
  milliseconds start{60'000};          // ... and start them
  milliseconds lost{60'000};           // a link may be broken this long under a running job
  milliseconds default_grace{30'000};  // between SIGTERM and SIGKILL
  milliseconds save{600'000};          // a stop that lets the ranks save first waits this long
  milliseconds verify_margin{15'000};  // after the grace: KILL, sweep and the end report
};

// The link to a host; jobs that follow each other share it.
struct Link {
  v1::Host host;
  std::string default_transport;
  v1::LinkState state = v1::LINK_STATE_GONE;
  v1::WorkerHello hello;  // the last one
  std::string error;      // the last one
  bool pushing = false;   // the worker is under way to this host
};

// One node of a job's newest attempt.
struct NodeRun {
  v1::Host host;

  // The wish for this node, as last persisted and (when the link is up) sent.
  uint64_t generation = 0;
  v1::Goal goal = v1::GOAL_UNSPECIFIED;
  milliseconds grace{0};
  std::string stop_reason;

  // What the node says.
  bool reached = false;  // the goal, by every rank
  std::optional<v1::EndReport> end;
  bool unverified = false;     // declared: did not prove its end in time
  std::string unverified_why;  // for people
  std::string boot_id;         // nodes with the same one share a clock
  std::optional<preflight::ClockOffset> clock;

  // Preflight only; not kept over a restart of the controller.
  uint64_t probe_id = 0;  // 0 = not asked on this connection
  int64_t probe_sent_ns = 0;
  std::optional<v1::ProbeResult> probe;
  int64_t nobody_ns = 0;  // when it first answered that nobody listens; 0 = it has not
  std::string absent;     // why preflight waits for it no more
  std::string twin;       // absent because the worker behind this other host is the same one

  // Proved to have ended, or given up on.
  bool settled() const { return end.has_value() || unverified; }
};

// What the node's clock is surely ahead of ours (behind: negative). 0 within the uncertainty: an
// offset that is mostly noise would put lines of nodes with good clocks into a wrong order.
int64_t SureClockOffset(const NodeRun& node);

// Nodes of a job in planning and preflight that lacked the worker.
struct Pushes {
  uint32_t begun = 0;
  uint32_t done = 0;
  int64_t said_ns = 0;  // when they were counted for people
};

// Why a job is being stopped; the first reason stays.
struct StopReason {
  v1::Cause cause = v1::CAUSE_UNSPECIFIED;
  std::string message;  // for RANK_FAILED: written anew when all ranks have ended
  std::string host;     // where, if it was one host
};

struct JobRun {
  uint64_t id = 0;
  bool check_only = false;  // `muster check`: ends with its preflight, and is never stored
  std::optional<v1::LeftoverSweep> sweep;  // `muster cleanup`: a check that asks for leftovers only
  v1::JobState state = v1::JOB_STATE_QUEUED;
  v1::JobSpec spec;  // with secrets
  std::optional<v1::Plan> plan;
  std::string name;  // Plan.name, or the spec's while there is no plan
  std::string output_dir;
  uint32_t attempt = 0;
  int64_t submitted_ns = 0;
  int64_t started_ns = 0;
  int64_t ended_ns = 0;
  uint32_t master_port = 0;
  std::vector<NodeRun> nodes;         // as the plan's nodes
  std::vector<v1::RankStatus> ranks;  // index = global rank
  uint64_t last_sequence = 0;         // of its events
  std::optional<StopReason> stop;
  milliseconds grace{0};     // of the stop
  uint32_t save_signal = 0;  // of a stop that lets the ranks save first; 0 = none
  bool logs_open = false;
  bool logs_complete = false;
  std::optional<v1::Outcome> outcome;  // once terminal
  std::string waits_for;               // the last text about waiting in the queue
  Pushes pushes;
  bool probing = false;     // the probe's time-out runs
  uint32_t breaks = 0;      // of links, during preflight
  std::string probe_ports;  // that preflight tries between the hosts, for people
  bool forgotten = false;   // erased before the next event
};

// Checks are numbered apart from jobs.
inline constexpr uint64_t kFirstCheck = uint64_t{1} << 62;
inline constexpr uint64_t kFirstStaging = uint64_t{1} << 61;

struct State {
  std::string controller_id;
  std::string version;
  Limits limits;
  std::map<std::string, Link> links;  // by host
  std::map<uint64_t, JobRun> jobs;    // every job with something left to do, also on its nodes
  std::map<uint64_t, JobRun> checks;  // preflights alone; ids from kFirstCheck on
  std::map<uint64_t, stage::StageRun> stagings;  // trees on their way; ids from kFirstStaging on
  uint64_t last_probe_id = 0;
};

// What survives a restart of the controller: the rest of `job` at its default.
JobRun Durable(JobRun job);

// The attempt's identity on the wire.
v1::AttemptId MakeAttemptId(const State& state, const JobRun& job);

// Index of the node named `host`, or nothing.
std::optional<size_t> FindNode(const JobRun& job, const std::string& host);

// Hosts that the job uses: its plan's, or without a plan the first `nnodes` that are no spares.
std::vector<v1::Host> HostsOf(const JobRun& job);

// The job or check of this number; null: there is none.
JobRun* FindRun(State& state, uint64_t id);

// Between SIGTERM and SIGKILL, as the job wishes it.
milliseconds GraceOf(const State& state, const JobRun& job);

}  // namespace muster::engine
