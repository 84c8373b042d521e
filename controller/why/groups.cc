#include "controller/why/groups.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <utility>

#include "controller/engine/outcome.h"
#include "controller/engine/text.h"

namespace muster::why {
namespace {

constexpr size_t kMaxLine = 160;

// Steps, losses and ranks differ; what a line says is the rest of it.
std::string WithoutNumbers(const std::string& line) {
  std::string out;
  for (const char c : line) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) {
      out += c;
    } else if (out.empty() || out.back() != '#') {
      out += '#';
    }
  }
  return out;
}

template <typename Number>
void Widen(std::optional<std::pair<Number, Number>>& range, Number value) {
  if (!range) range.emplace(value, value);
  range->first = std::min(range->first, value);
  range->second = std::max(range->second, value);
}

// Adds `other` to `group`, without its line.
void Absorb(RankGroup& group, const RankGroup& other) {
  group.ranks.insert(group.ranks.end(), other.ranks.begin(), other.ranks.end());
  if (other.iterations) {
    Widen(group.iterations, other.iterations->first);
    Widen(group.iterations, other.iterations->second);
  }
}

}  // namespace

std::string Doing(const v1::RankStatus& status) {
  const v1::RankExit& exit = status.exit();
  switch (status.state()) {
    case v1::RANK_STATE_RUNNING:
      return status.stopped() ? "stopped (state T)" : "running";
    case v1::RANK_STATE_KILLED:
      if (exit.escalated()) return "running; did not end at SIGTERM, killed by us (SIGKILL)";
      if (exit.signal() != 0) {
        return absl::StrCat("running, ended by us (", engine::SignalName(exit.signal()), ")");
      }
      return absl::StrCat("running, asked by us to end: exited with code ", exit.code());
    case v1::RANK_STATE_EXITED:
      return engine::DescribeExit(status);
    default:
      return status.error().empty() ? "not started" : "not started: " + status.error();
  }
}

std::vector<RankGroup> GroupRanks(const std::vector<const v1::RankView*>& ranks, const Words& words,
                                  int64_t first_failure_ns, size_t most) {
  std::map<std::pair<std::string, std::string>, RankGroup> by_key;
  for (const v1::RankView* const rank : ranks) {
    const uint32_t number = rank->status().rank();
    const auto said = words.find(number);
    const RankWords* const its = said == words.end() ? nullptr : &said->second;
    std::string line = its != nullptr && its->last ? its->last->text : "";
    line = engine::Printable(engine::Shorten(line, kMaxLine));
    std::string doing = engine::Printable(Doing(rank->status()));
    RankGroup& group = by_key[{doing, WithoutNumbers(line)}];
    if (group.ranks.empty()) {
      group.doing = std::move(doing);
      group.last_line = std::move(line);
    }
    group.ranks.push_back(number);
    if (its != nullptr && its->iteration) Widen(group.iterations, *its->iteration);
    if (first_failure_ns != 0 && engine::IsFailure(rank->status()) && rank->ended_ns() != 0) {
      Widen(group.after_s, static_cast<double>(rank->ended_ns() - first_failure_ns) / 1e9);
    }
  }
  std::vector<RankGroup> groups;
  groups.reserve(by_key.size());
  for (auto& [key, group] : by_key) groups.push_back(std::move(group));
  std::stable_sort(groups.begin(), groups.end(), [](const RankGroup& a, const RankGroup& b) {
    return a.ranks.size() > b.ranks.size();
  });
  if (groups.size() <= most) return groups;
  RankGroup rest;
  rest.doing = absl::StrCat("in ", groups.size() - most + 1, " smaller groups");
  for (size_t i = most - 1; i < groups.size(); ++i) Absorb(rest, groups[i]);
  std::sort(rest.ranks.begin(), rest.ranks.end());
  groups.resize(most - 1);
  groups.push_back(std::move(rest));
  return groups;
}

}  // namespace muster::why
