#include "worker/ranks/reconcile.h"

#include <absl/strings/escaping.h>

#include <algorithm>
#include <set>

namespace muster::ranks {
namespace {

// Far above any node, far below what one message can hold.
constexpr int kMaxRanksPerNode = 4096;

std::string GoalName(v1::Goal goal) {
  const std::string name = v1::Goal_Name(goal);
  return name.empty() ? std::to_string(static_cast<int>(goal)) : name.substr(sizeof "GOAL_" - 1);
}

bool IsLive(const v1::RankStatus& rank) {
  return rank.state() == v1::RANK_STATE_PREPARED || rank.state() == v1::RANK_STATE_RUNNING;
}

std::set<uint32_t> Numbers(const google::protobuf::RepeatedPtrField<v1::RankSpec>& specs) {
  std::set<uint32_t> numbers;
  for (const v1::RankSpec& spec : specs) numbers.insert(spec.rank());
  return numbers;
}

// What is wrong with the ranks of a wish for an attempt that is new here.
std::string BadRanks(const v1::Desired& wish) {
  if (wish.ranks().empty()) {
    return "attempt " + AttemptName(wish.id()) + " is unknown here: " + GoalName(wish.goal()) +
           " needs its ranks (send PREPARED with them first)";
  }
  if (wish.ranks_size() > kMaxRanksPerNode) {
    return std::to_string(wish.ranks_size()) + " ranks on one node, at most " +
           std::to_string(kMaxRanksPerNode);
  }
  if (Numbers(wish.ranks()).size() != static_cast<size_t>(wish.ranks_size())) {
    return "a rank is given twice";
  }
  for (const v1::RankSpec& spec : wish.ranks()) {
    const std::string rank = "rank " + std::to_string(spec.rank()) + ": ";
    if (spec.argv().empty() || spec.argv(0).empty()) return rank + "no command";
    if (spec.working_dir().empty() || spec.working_dir()[0] != '/') {
      return rank + "working folder '" + spec.working_dir() + "' is not an absolute path";
    }
    for (const std::string& word : spec.argv()) {
      if (word.find('\0') != std::string::npos) return rank + "a NUL byte inside an argument";
    }
    for (const v1::EnvVar& variable : spec.env()) {
      if (variable.name().empty() || variable.name().find('=') != std::string::npos ||
          (variable.name() + variable.value()).find('\0') != std::string::npos) {
        return rank + "environment variable '" + variable.name() + "' is not NAME=VALUE";
      }
    }
  }
  return "";
}

}  // namespace

bool HasEnded(const v1::RankStatus& rank) {
  return rank.state() == v1::RANK_STATE_EXITED || rank.state() == v1::RANK_STATE_KILLED;
}

bool IsSafeName(const std::string& name) {
  return !name.empty() && name.size() <= 64 && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

std::string AttemptName(const v1::AttemptId& id) {
  return id.controller_id() + "/" + id.job_id() + "/" + std::to_string(id.attempt());
}

std::string Refusal(const v1::Desired& wish, const worker::AttemptRecord* record,
                    const std::string& owner) {
  const v1::AttemptId& id = wish.id();
  if (!IsSafeName(id.controller_id()) || !IsSafeName(id.job_id())) {
    // Hostile names must neither fill nor forge the log.
    return "attempt " + absl::CHexEscape(AttemptName(id).substr(0, 100)) +
           ": an id has 1 to 64 of A-Z a-z 0-9 . _ -";
  }
  if (id.controller_id() != owner) {
    return "attempt " + AttemptName(id) + " belongs to another controller than this stream ('" +
           owner + "')";
  }
  if (wish.goal() < v1::GOAL_PREPARED || wish.goal() > v1::GOAL_FORGOTTEN) {
    return "unknown goal " + std::to_string(static_cast<int>(wish.goal()));
  }
  const bool starts = wish.goal() <= v1::GOAL_RUNNING;
  if (record == nullptr) return starts ? BadRanks(wish) : "";
  const std::string generation = "generation " + std::to_string(wish.generation());
  if (wish.generation() < record->generation()) {
    return generation + " is older than the accepted " + std::to_string(record->generation());
  }
  if (wish.generation() == record->generation() && wish.goal() != record->goal()) {
    return generation + " was already accepted with goal " + GoalName(record->goal());
  }
  if (wish.goal() < record->goal()) {
    return "goals only go forward: " + GoalName(wish.goal()) + " after " + GoalName(record->goal());
  }
  if (!wish.ranks().empty() && starts) {
    std::set<uint32_t> known;
    for (const v1::RankStatus& rank : record->ranks()) known.insert(rank.rank());
    if (Numbers(wish.ranks()) != known) return "the ranks of an attempt cannot change";
  }
  if (wish.goal() == v1::GOAL_FORGOTTEN) {
    for (const v1::RankStatus& rank : record->ranks()) {
      if (IsLive(rank)) {
        return "rank " + std::to_string(rank.rank()) + " still lives: stop the attempt first";
      }
    }
  }
  return "";
}

}  // namespace muster::ranks
