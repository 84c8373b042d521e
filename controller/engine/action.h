#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "controller/engine/event.h"

// What the engine wishes to be done, in order. The runtime makes every Persist* and Emit of a batch
// durable before it executes anything else of it: a wish that a node has seen is never unknown to a
// restarted controller.

namespace muster::engine {

// Make (or make anew) the link to the host and begin to dial.
struct Connect {
  v1::Host host;
  std::string default_transport;
};
// No job needs the host: end the link.
struct Disconnect {
  std::string host;
};
struct Send {
  std::string host;
  v1::AttachRequest message;
};
struct StartTimer {
  TimerKey key;
  milliseconds after;
};
struct CancelTimer {
  TimerKey key;
};
// Open the log files of the job's newest attempt. Idempotent; a failure comes back as
// InternalError.
struct OpenLogs {
  uint64_t job = 0;
};
// The host's streams will not grow any more.
struct AbandonLogs {
  uint64_t job = 0;
  std::string host;
};
// The plan has become known after the submit: write it into the output folder.
struct WritePlan {
  uint64_t job = 0;
};
// The job itself, its attempt and its nodes.
struct PersistJob {
  uint64_t job = 0;
};
struct PersistRank {
  uint64_t job = 0;
  uint32_t rank = 0;
};
// Something happened; sequence and time are set.
struct Emit {
  uint64_t job = 0;
  v1::JobEvent event;
};
// What preflight found on each host, to be remembered.
struct RememberChecks {
  std::vector<v1::NodeCheck> nodes;
};
// The end of a check.
struct CheckDone {
  uint64_t id = 0;
  v1::CheckResponse response;
};
// Read a piece of the tree and send it to the host; then comes PieceSent, or StageBroken.
struct SendPiece {
  uint64_t id = 0;
  std::string host;
  uint32_t piece = 0;
};
// How far a transfer is. With `last` it is over, and `why` says whether it was broken off.
struct StageNews {
  uint64_t id = 0;
  v1::StageResponse response;
  absl::Status why;
};
// The link to a host changed its state: for the node's history.
struct NoteNode {
  std::string host;
  v1::LinkState state = v1::LINK_STATE_GONE;
  std::string text;
};
// The last words of a job that has ended are there: write why.txt anew.
struct WriteWhy {
  uint64_t job = 0;
};
// The job is terminal: write why.txt, forget its secrets, tell its watchers. Once per job.
struct Finish {
  uint64_t job = 0;
};
// Nothing is left to do for the job, on no node: it is in the store only from now on.
struct Forget {
  uint64_t job = 0;
};
// A transition outside the tables: a bug, or a worker that breaks the protocol.
struct ReportIllegal {
  std::string message;
};

using Action =
    std::variant<Connect, Disconnect, Send, StartTimer, CancelTimer, OpenLogs, AbandonLogs,
                 WritePlan, PersistJob, PersistRank, Emit, RememberChecks, CheckDone, SendPiece,
                 StageNews, NoteNode, WriteWhy, Finish, Forget, ReportIllegal>;
using Actions = std::vector<Action>;

}  // namespace muster::engine
