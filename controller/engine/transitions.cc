#include "controller/engine/transitions.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

namespace muster::engine {
namespace {

template <typename State, typename Input>
absl::StatusOr<State> Find(const std::vector<Row<State, Input>>& table, const char* machine,
                           State state, Input input) {
  for (const auto& row : table) {
    if (row.state == state && row.input == input) return row.next;
  }
  return absl::FailedPreconditionError(absl::StrCat("illegal ", machine, " transition: \"",
                                                    Name(state), "\" got \"", Name(input), "\""));
}

// "JOB_STATE_RUNNING" -> "running".
std::string FromProtoName(const std::string& name, size_t prefix) {
  return absl::AsciiStrToLower(absl::string_view(name).substr(prefix));
}

}  // namespace

const std::vector<Row<v1::JobState, JobInput>>& JobTable() {
  using enum JobInput;
  static const auto* const table = new std::vector<Row<v1::JobState, JobInput>>{
      // clang-format off
      {v1::JOB_STATE_QUEUED,    kScheduled,     v1::JOB_STATE_PLANNING},
      {v1::JOB_STATE_QUEUED,    kRejected,      v1::JOB_STATE_FAILED},
      {v1::JOB_STATE_QUEUED,    kStopRequested, v1::JOB_STATE_STOPPED},
      {v1::JOB_STATE_QUEUED,    kRecovered,     v1::JOB_STATE_QUEUED},

      {v1::JOB_STATE_PLANNING,  kPlanned,       v1::JOB_STATE_PREFLIGHT},
      {v1::JOB_STATE_PLANNING,  kRejected,      v1::JOB_STATE_FAILED},
      {v1::JOB_STATE_PLANNING,  kStopRequested, v1::JOB_STATE_STOPPED},
      {v1::JOB_STATE_PLANNING,  kRecovered,     v1::JOB_STATE_QUEUED},

      {v1::JOB_STATE_PREFLIGHT, kChecked,       v1::JOB_STATE_PREPARING},
      {v1::JOB_STATE_PREFLIGHT, kRejected,      v1::JOB_STATE_FAILED},
      {v1::JOB_STATE_PREFLIGHT, kStopRequested, v1::JOB_STATE_STOPPED},
      {v1::JOB_STATE_PREFLIGHT, kRecovered,     v1::JOB_STATE_QUEUED},

      {v1::JOB_STATE_PREPARING, kPrepared,      v1::JOB_STATE_STARTING},
      {v1::JOB_STATE_PREPARING, kBroken,        v1::JOB_STATE_STOPPING},
      {v1::JOB_STATE_PREPARING, kStopRequested, v1::JOB_STATE_STOPPING},
      {v1::JOB_STATE_PREPARING, kRecovered,     v1::JOB_STATE_PREPARING},

      {v1::JOB_STATE_STARTING,  kStarted,       v1::JOB_STATE_RUNNING},
      {v1::JOB_STATE_STARTING,  kBroken,        v1::JOB_STATE_STOPPING},
      {v1::JOB_STATE_STARTING,  kStopRequested, v1::JOB_STATE_STOPPING},
      {v1::JOB_STATE_STARTING,  kRecovered,     v1::JOB_STATE_STARTING},

      {v1::JOB_STATE_RUNNING,   kBroken,        v1::JOB_STATE_STOPPING},
      {v1::JOB_STATE_RUNNING,   kStopRequested, v1::JOB_STATE_STOPPING},
      {v1::JOB_STATE_RUNNING,   kEndedOk,       v1::JOB_STATE_SUCCEEDED},
      {v1::JOB_STATE_RUNNING,   kEndedFailed,   v1::JOB_STATE_FAILED},
      {v1::JOB_STATE_RUNNING,   kRecovered,     v1::JOB_STATE_RUNNING},

      {v1::JOB_STATE_STOPPING,  kStopRequested, v1::JOB_STATE_STOPPING},
      {v1::JOB_STATE_STOPPING,  kEndedOk,       v1::JOB_STATE_SUCCEEDED},
      {v1::JOB_STATE_STOPPING,  kEndedFailed,   v1::JOB_STATE_FAILED},
      {v1::JOB_STATE_STOPPING,  kEndedStopped,  v1::JOB_STATE_STOPPED},
      {v1::JOB_STATE_STOPPING,  kRecovered,     v1::JOB_STATE_STOPPING},

      {v1::JOB_STATE_SUCCEEDED, kRecovered,     v1::JOB_STATE_SUCCEEDED},
      {v1::JOB_STATE_FAILED,    kRecovered,     v1::JOB_STATE_FAILED},
      {v1::JOB_STATE_STOPPED,   kRecovered,     v1::JOB_STATE_STOPPED},
      // clang-format on
  };
  return *table;
}

const std::vector<Row<v1::LinkState, LinkInput>>& LinkTable() {
  using enum LinkInput;
  static const auto* const table = new std::vector<Row<v1::LinkState, LinkInput>>{
      // clang-format off
      {v1::LINK_STATE_GONE,       kDial,    v1::LINK_STATE_CONNECTING},

      {v1::LINK_STATE_CONNECTING, kDial,    v1::LINK_STATE_CONNECTING},
      {v1::LINK_STATE_CONNECTING, kUp,      v1::LINK_STATE_UP},
      {v1::LINK_STATE_CONNECTING, kLost,    v1::LINK_STATE_LOST},
      {v1::LINK_STATE_CONNECTING, kRelease, v1::LINK_STATE_GONE},

      {v1::LINK_STATE_UP,         kDial,    v1::LINK_STATE_CONNECTING},  // another address for the same host
      {v1::LINK_STATE_UP,         kUp,      v1::LINK_STATE_UP},          // the worker was restarted
      {v1::LINK_STATE_UP,         kLost,    v1::LINK_STATE_LOST},
      {v1::LINK_STATE_UP,         kRelease, v1::LINK_STATE_GONE},

      {v1::LINK_STATE_LOST,       kDial,    v1::LINK_STATE_CONNECTING},
      {v1::LINK_STATE_LOST,       kUp,      v1::LINK_STATE_UP},
      {v1::LINK_STATE_LOST,       kLost,    v1::LINK_STATE_LOST},
      {v1::LINK_STATE_LOST,       kRelease, v1::LINK_STATE_GONE},
      // clang-format on
  };
  return *table;
}

const std::vector<Row<v1::RankState, v1::RankState>>& RankTable() {
  // Reports may skip states (a lost message, a rank that ends at once), but never go back: a
  // started rank that its node calls absent or prepared means that the node has lost its state.
  static const auto* const table = new std::vector<Row<v1::RankState, v1::RankState>>{
      // clang-format off
      {v1::RANK_STATE_ABSENT,   v1::RANK_STATE_ABSENT,   v1::RANK_STATE_ABSENT},
      {v1::RANK_STATE_ABSENT,   v1::RANK_STATE_PREPARED, v1::RANK_STATE_PREPARED},
      {v1::RANK_STATE_ABSENT,   v1::RANK_STATE_RUNNING,  v1::RANK_STATE_RUNNING},
      {v1::RANK_STATE_ABSENT,   v1::RANK_STATE_EXITED,   v1::RANK_STATE_EXITED},
      {v1::RANK_STATE_ABSENT,   v1::RANK_STATE_KILLED,   v1::RANK_STATE_KILLED},

      {v1::RANK_STATE_PREPARED, v1::RANK_STATE_ABSENT,   v1::RANK_STATE_ABSENT},  // stopped before its start
      {v1::RANK_STATE_PREPARED, v1::RANK_STATE_PREPARED, v1::RANK_STATE_PREPARED},
      {v1::RANK_STATE_PREPARED, v1::RANK_STATE_RUNNING,  v1::RANK_STATE_RUNNING},
      {v1::RANK_STATE_PREPARED, v1::RANK_STATE_EXITED,   v1::RANK_STATE_EXITED},
      {v1::RANK_STATE_PREPARED, v1::RANK_STATE_KILLED,   v1::RANK_STATE_KILLED},

      {v1::RANK_STATE_RUNNING,  v1::RANK_STATE_RUNNING,  v1::RANK_STATE_RUNNING},
      {v1::RANK_STATE_RUNNING,  v1::RANK_STATE_EXITED,   v1::RANK_STATE_EXITED},
      {v1::RANK_STATE_RUNNING,  v1::RANK_STATE_KILLED,   v1::RANK_STATE_KILLED},

      {v1::RANK_STATE_EXITED,   v1::RANK_STATE_EXITED,   v1::RANK_STATE_EXITED},
      {v1::RANK_STATE_KILLED,   v1::RANK_STATE_KILLED,   v1::RANK_STATE_KILLED},
      // clang-format on
  };
  return *table;
}

absl::StatusOr<v1::JobState> Next(v1::JobState state, JobInput input) {
  return Find(JobTable(), "job", state, input);
}
absl::StatusOr<v1::LinkState> Next(v1::LinkState state, LinkInput input) {
  return Find(LinkTable(), "link", state, input);
}
absl::StatusOr<v1::RankState> Next(v1::RankState state, v1::RankState observed) {
  return Find(RankTable(), "rank", state, observed);
}

std::string Name(v1::JobState state) {
  return FromProtoName(v1::JobState_Name(state), sizeof("JOB_STATE_") - 1);
}
std::string Name(v1::LinkState state) {
  return FromProtoName(v1::LinkState_Name(state), sizeof("LINK_STATE_") - 1);
}
std::string Name(v1::RankState state) {
  return FromProtoName(v1::RankState_Name(state), sizeof("RANK_STATE_") - 1);
}

std::string Name(JobInput input) {
  switch (input) {
    case JobInput::kScheduled:
      return "scheduled";
    case JobInput::kPlanned:
      return "planned";
    case JobInput::kRejected:
      return "rejected";
    case JobInput::kChecked:
      return "checked";
    case JobInput::kPrepared:
      return "prepared";
    case JobInput::kStarted:
      return "started";
    case JobInput::kBroken:
      return "broken";
    case JobInput::kStopRequested:
      return "stop requested";
    case JobInput::kEndedOk:
      return "ended ok";
    case JobInput::kEndedFailed:
      return "ended failed";
    case JobInput::kEndedStopped:
      return "ended stopped";
    case JobInput::kRecovered:
      break;
  }
  return "recovered";
}

std::string Name(LinkInput input) {
  switch (input) {
    case LinkInput::kDial:
      return "dial";
    case LinkInput::kUp:
      return "up";
    case LinkInput::kLost:
      return "lost";
    case LinkInput::kRelease:
      break;
  }
  return "release";
}

bool IsTerminal(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED ||
         state == v1::JOB_STATE_STOPPED;
}

}  // namespace muster::engine
