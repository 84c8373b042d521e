#include "controller/plan/rank_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "controller/plan/text_table.h"

namespace muster::plan {
namespace {

const v1::RankPlan& RankAt(const v1::Plan& plan, uint32_t rank) {
  return plan.ranks(static_cast<int>(rank));
}

const v1::Host& HostAt(const v1::Plan& plan, uint32_t node) {
  return plan.nodes(static_cast<int>(node)).host();
}

std::string Device(const v1::RankPlan& rank) {
  return rank.has_device() ? std::to_string(rank.device()) : "-";
}

// "3", "0-7".
std::string Range(uint32_t low, uint32_t high) {
  return low == high ? std::to_string(low) : fmt::format("{}-{}", low, high);
}

// The values that a coordinate takes within a block.
template <typename Get>
std::string Coordinate(const v1::Plan& plan, const RankBlock& block, Get get) {
  uint32_t low = get(RankAt(plan, block.first_rank));
  uint32_t high = low;
  for (uint32_t rank = block.first_rank; rank <= block.last_rank; ++rank) {
    low = std::min(low, get(RankAt(plan, rank)));
    high = std::max(high, get(RankAt(plan, rank)));
  }
  return Range(low, high);
}

std::string Hosts(const v1::Plan& plan, const RankBlock& block) {
  const std::string& first = HostAt(plan, block.first_node).host();
  if (block.first_node == block.last_node) return first;
  return fmt::format("{} ... {} ({})", first, HostAt(plan, block.last_node).host(),
                     block.last_node - block.first_node + 1);
}

}  // namespace

std::vector<RankBlock> FoldRanks(const v1::Plan& plan) {
  std::vector<RankBlock> out;
  for (uint32_t rank = 0; rank < plan.world();) {
    // All that this host has of this stage.
    const v1::RankPlan& first = RankAt(plan, rank);
    uint32_t end = rank + 1;
    while (end < plan.world() && RankAt(plan, end).node() == first.node() &&
           RankAt(plan, end).pp() == first.pp()) {
      ++end;
    }
    const uint32_t count = end - rank;
    RankBlock* last = out.empty() ? nullptr : &out.back();
    if (last != nullptr && last->per_host == count && last->last_node + 1 == first.node() &&
        RankAt(plan, last->first_rank).pp() == first.pp()) {
      last->last_rank = end - 1;
      last->last_node = first.node();
    } else {
      out.push_back({rank, end - 1, first.node(), first.node(), count});
    }
    rank = end;
  }
  return out;
}

std::string WholeRankTable(const v1::Plan& plan) {
  std::vector<Row> rows = {{"host", "rank", "local", "device", "tp", "cp", "dp", "pp"}};
  for (const v1::RankPlan& rank : plan.ranks()) {
    rows.push_back({HostAt(plan, rank.node()).host(), std::to_string(rank.rank()),
                    std::to_string(rank.local_rank()), Device(rank), std::to_string(rank.tp()),
                    std::to_string(rank.cp()), std::to_string(rank.dp()),
                    std::to_string(rank.pp())});
  }
  return TextTable(rows, 1);
}

std::string FoldedRankTable(const v1::Plan& plan) {
  std::vector<Row> rows = {{"hosts", "ranks", "a host", "tp", "cp", "dp", "pp"}};
  for (const RankBlock& block : FoldRanks(plan)) {
    const auto coordinate = [&](auto get) { return Coordinate(plan, block, get); };
    rows.push_back({Hosts(plan, block), Range(block.first_rank, block.last_rank),
                    std::to_string(block.per_host),
                    coordinate([](const v1::RankPlan& r) { return r.tp(); }),
                    coordinate([](const v1::RankPlan& r) { return r.cp(); }),
                    coordinate([](const v1::RankPlan& r) { return r.dp(); }),
                    coordinate([](const v1::RankPlan& r) { return r.pp(); })});
  }
  return TextTable(rows, 1);
}

}  // namespace muster::plan
