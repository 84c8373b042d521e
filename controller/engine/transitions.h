#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "muster/v1/control.pb.h"
#include "muster/v1/worker.pb.h"

// The three state machines of the engine, each written as one table: what is not in a table is
// illegal, and the error names machine, state and input. docs/exit-codes.md says what the ends of a
// job mean.

namespace muster::engine {

// What can happen to a job.
enum class JobInput {
  kScheduled,  // its hosts are free
  kPlanned,    // the plan is known
  kRejected,  // refused before anything was started: no plan, a host that does not answer, a failed
              // check
  kChecked,   // preflight found no error
  kPrepared,  // every node is prepared
  kStarted,   // every rank was seen running
  kBroken,  // a rank failed, a node could not start its ranks or was lost, or Muster itself failed
  kStopRequested,  // by the user
  kEndedOk,        // every node has ended: as it should
  kEndedFailed,    // ... by a failure
  kEndedStopped,   // ... by the user's stop
  kRecovered,      // the controller has started again and read the job from its store
};

// What can happen to the link to a host.
enum class LinkInput {
  kDial,     // a job needs the host
  kUp,       // the worker said hello
  kLost,     // the stream broke, or could not be opened
  kRelease,  // no job needs the host any more
};

template <typename State, typename Input>
struct Row {
  State state;
  Input input;
  State next;
};

const std::vector<Row<v1::JobState, JobInput>>& JobTable();
const std::vector<Row<v1::LinkState, LinkInput>>& LinkTable();
// For a rank the input is what its node reports.
const std::vector<Row<v1::RankState, v1::RankState>>& RankTable();

// The next state, or FailedPrecondition `illegal job transition: "running" got "planned"`.
absl::StatusOr<v1::JobState> Next(v1::JobState state, JobInput input);
absl::StatusOr<v1::LinkState> Next(v1::LinkState state, LinkInput input);
absl::StatusOr<v1::RankState> Next(v1::RankState state, v1::RankState observed);

// Words for people: "running", "stop requested", "up", "exited".
std::string Name(v1::JobState state);
std::string Name(JobInput input);
std::string Name(v1::LinkState state);
std::string Name(LinkInput input);
std::string Name(v1::RankState state);

// Succeeded, failed or stopped: nothing more happens to the job itself.
bool IsTerminal(v1::JobState state);

}  // namespace muster::engine
