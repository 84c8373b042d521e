#include "controller/plan/groups.h"

#include <algorithm>
#include <array>
#include <map>

namespace muster::plan {
namespace {

// The coordinates that differ within a group of this kind.
struct Varying {
  bool tp = false;
  bool cp = false;
  bool dp = false;
  bool pp = false;
};

Varying VaryingOf(GroupKind kind) {
  switch (kind) {
    case GroupKind::kTp:
      return {.tp = true};
    case GroupKind::kCp:
      return {.cp = true};
    case GroupKind::kDp:
      return {.dp = true};
    case GroupKind::kDpCp:
      return {.cp = true, .dp = true};
    case GroupKind::kTpCp:
      return {.tp = true, .cp = true};
    case GroupKind::kTpDp:
      return {.tp = true, .dp = true};
    case GroupKind::kTpDpCp:
      return {.tp = true, .cp = true, .dp = true};
    case GroupKind::kTpPp:
      return {.tp = true, .pp = true};
    case GroupKind::kPp:
    case GroupKind::kEmbedding:
    case GroupKind::kPositionEmbedding:
      return {.pp = true};
  }
  return {};
}

using Key = std::array<uint32_t, 4>;

Key KeyOf(const v1::RankPlan& rank, const Varying& varying) {
  return {varying.tp ? 0 : rank.tp(), varying.cp ? 0 : rank.cp(), varying.dp ? 0 : rank.dp(),
          varying.pp ? 0 : rank.pp()};
}

}  // namespace

const std::vector<GroupInfo>& GroupKinds() {
  static const std::vector<GroupInfo> kKinds = {
      {GroupKind::kTp, "tp", "activations of layers"},
      {GroupKind::kCp, "cp", "keys, values"},
      {GroupKind::kDp, "dp", "batches"},
      {GroupKind::kDpCp, "dp-cp", "gradients, optimizer"},
      {GroupKind::kTpCp, "tp-cp", ""},
      {GroupKind::kTpDp, "tp-dp", ""},
      {GroupKind::kTpDpCp, "tp-dp-cp", "FP8 amax"},
      {GroupKind::kPp, "pp", "activations"},
      {GroupKind::kTpPp, "tp-pp", "norm"},
      {GroupKind::kEmbedding, "embedding", "embeddings if tied"},
      {GroupKind::kPositionEmbedding, "position-embedding", ""},
  };
  return kKinds;
}

std::vector<std::vector<uint32_t>> Groups(const v1::Plan& plan, GroupKind kind) {
  const Varying varying = VaryingOf(kind);
  std::map<Key, size_t> places;
  std::vector<std::vector<uint32_t>> out;
  for (const v1::RankPlan& rank : plan.ranks()) {
    const auto [it, is_new] = places.emplace(KeyOf(rank, varying), out.size());
    if (is_new) out.emplace_back();
    out[it->second].push_back(rank.rank());
  }
  for (std::vector<uint32_t>& group : out) {
    if (kind == GroupKind::kPositionEmbedding) group.resize(1);
    if (kind == GroupKind::kEmbedding && group.size() > 1) group = {group.front(), group.back()};
  }
  return out;
}

GroupSpread Spread(const v1::Plan& plan, GroupKind kind) {
  GroupSpread out;
  out.kind = kind;
  for (const std::vector<uint32_t>& group : Groups(plan, kind)) {
    ++out.count;
    out.size = std::max(out.size, static_cast<uint32_t>(group.size()));
    const auto node = [&](uint32_t rank) { return plan.ranks(static_cast<int>(rank)).node(); };
    const bool crosses = std::any_of(group.begin(), group.end(), [&](uint32_t rank) {
      return node(rank) != node(group.front());
    });
    if (crosses && out.crossing++ == 0) out.example = group;
    if (out.example.empty()) out.example = group;
  }
  return out;
}

}  // namespace muster::plan
