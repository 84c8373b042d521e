#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "controller/engine/state.h"

// What the engine is told. Plain values, posted by links, timers, the control service and the log
// organ.

namespace muster::engine {

enum class TimerKind { kConnect, kProbe, kPrepare, kStart, kLost, kStop, kStage };

// A timer is named by what it watches; starting one again replaces it.
struct TimerKey {
  uint64_t job = 0;
  TimerKind kind = TimerKind::kConnect;
  std::string host;  // with kLost

  friend bool operator<(const TimerKey& a, const TimerKey& b) {
    return std::tie(a.job, a.kind, a.host) < std::tie(b.job, b.kind, b.host);
  }
};

// A new job. `plan` is absent while slots are unknown.
struct Submitted {
  uint64_t job = 0;
  v1::JobSpec spec;
  std::optional<v1::Plan> plan;
  std::string name;
  std::string output_dir;
};
// A preflight alone. An empty command: the hosts as such.
struct CheckRequested {
  uint64_t id = 0;
  v1::JobSpec spec;
  std::optional<v1::Plan> plan;
  std::optional<v1::LeftoverSweep> sweep;  // instead of all questions
};
struct LinkUp {
  std::string host;
  v1::WorkerHello hello;
};
struct LinkLost {
  std::string host;
  absl::Status why;  // InvalidArgument: this link can't be made at all
};
// The worker is being pushed to this host; LinkUp or LinkLost follows.
struct PushBegan {
  std::string host;
};
struct ProbeAnswered {
  std::string host;
  v1::ProbeResult result;
};
struct NodeObserved {
  std::string host;
  v1::Observed observed;
};
struct TimerFired {
  TimerKey key;
};
struct StopRequested {
  uint64_t job = 0;
  std::optional<milliseconds> grace;  // absent: the job's own, or Limits::save
  bool save = false;                  // the ranks save and end by themselves
};
struct LogsComplete {
  v1::AttemptId id;
};
// Something of Muster's own failed for this job: its log files could not be made, say.
struct InternalError {
  uint64_t job = 0;
  std::string message;
};
// Something that a person should see in the job's story: a log file that can't be written, say.
struct Remark {
  uint64_t job = 0;
  std::string text;
};
// A tree is to go to hosts; the run has its random values and what is known of the tree.
struct StageRequested {
  stage::StageRun run;
};
struct StageReported {
  std::string host;
  v1::StageReport report;
};
// A piece that SendPiece asked for has gone to the link.
struct PieceSent {
  uint64_t id = 0;
  std::string host;
  uint64_t bytes = 0;
};
struct StageBroken {
  uint64_t id = 0;
  absl::Status why;
};
// First event after a start of the controller: the jobs of the store that have something left to
// do, made Durable.
struct Recovered {
  std::vector<JobRun> jobs;
};

struct Event {
  int64_t time_ns = 0;  // controller's CLOCK_REALTIME when it happened
  std::variant<Submitted, CheckRequested, LinkUp, LinkLost, PushBegan, ProbeAnswered, NodeObserved,
               TimerFired, StopRequested, LogsComplete, InternalError, Remark, Recovered,
               StageRequested, StageReported, PieceSent, StageBroken>
      what;
};

}  // namespace muster::engine
