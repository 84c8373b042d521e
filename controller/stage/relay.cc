#include "controller/stage/relay.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace muster::stage {
namespace {

constexpr int kRoots = 2;
constexpr int kChildren = 2;         // of a node that still fetches
constexpr int kChildrenOfWhole = 4;  // of one that has all
constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kMoveNs = 3 * kSecond;   // a new source is given so much time to show what it can
constexpr int64_t kStallNs = 8 * kSecond;  // without a piece, though its source has more
constexpr uint32_t kLagPieces = 32;        // 16 MiB

bool Whole(const StageRun& run, const StageNode& node) {
  return node.status.pieces() >= run.pieces && node.ready;
}

bool CanFeed(const StageNode& node) {
  return node.ready && node.port != 0 && !node.failed() && !node.slow;
}

// Whether the bytes of `node` come from `ancestor`, over any number of others.
bool ComesFrom(const StageRun& run, size_t node, size_t ancestor) {
  int at = static_cast<int>(node);
  for (size_t steps = 0; at >= 0 && steps <= run.nodes.size(); ++steps) {
    if (static_cast<size_t>(at) == ancestor) return true;
    at = run.nodes[static_cast<size_t>(at)].source;
  }
  return false;
}

int Depth(const StageRun& run, size_t node) {
  int depth = 0;
  int at = static_cast<int>(node);
  while (at >= 0 && depth <= static_cast<int>(run.nodes.size())) {
    if (Whole(run, run.nodes[static_cast<size_t>(at)])) break;
    at = run.nodes[static_cast<size_t>(at)].source;
    ++depth;
  }
  return depth;
}

int Children(const StageRun& run, size_t node) {
  return static_cast<int>(
      std::count_if(run.nodes.begin(), run.nodes.end(), [&](const StageNode& other) {
        return other.source == static_cast<int>(node) && !Whole(run, other) && !other.failed();
      }));
}

int Roots(const StageRun& run) {
  return static_cast<int>(
      std::count_if(run.nodes.begin(), run.nodes.end(), [&](const StageNode& node) {
        return node.source == kController && !Whole(run, node) && !node.failed();
      }));
}

int ChooseSource(const StageRun& run, size_t self) {
  const StageNode& node = run.nodes[self];
  std::optional<std::tuple<bool, int, int, int>> best;  // full, depth, children, index
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    const StageNode& other = run.nodes[i];
    const bool whole = Whole(run, other);
    // One that has no source itself has nothing to give yet.
    if (i == self || !CanFeed(other) || node.banned.contains(static_cast<int>(i)) ||
        (!whole && (other.source == kNoSource || ComesFrom(run, i, self)))) {
      continue;
    }
    const int children = Children(run, i);
    const bool full = children >= (whole ? kChildrenOfWhole : kChildren);
    const std::tuple rank(full, Depth(run, i), children, static_cast<int>(i));
    if (!best || rank < *best) best = rank;
  }
  const bool whole_one = best && std::get<1>(*best) == 0 && !std::get<0>(*best);
  if (whole_one || (best && (node.slow || Roots(run) >= kRoots))) return std::get<3>(*best);
  return kController;
}

}  // namespace

std::vector<size_t> AssignSources(StageRun& run, int64_t now_ns) {
  std::vector<size_t> changed;
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    StageNode& node = run.nodes[i];
    if (!node.ready || node.ended() || node.source != kNoSource) continue;
    node.source = ChooseSource(run, i);
    node.moved_ns = now_ns;
    node.progress_ns = now_ns;
    changed.push_back(i);
  }
  return changed;
}

void BanSource(StageRun& run, size_t node) {
  StageNode& self = run.nodes[node];
  if (self.source >= 0) self.banned.insert(self.source);
  self.source = kNoSource;
}

void ReplanSlow(StageRun& run, int64_t now_ns) {
  uint32_t most = 0;
  for (const StageNode& node : run.nodes) most = std::max(most, node.status.pieces());
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    StageNode& node = run.nodes[i];
    const uint32_t have = node.status.pieces();
    // One that has what its source has is as fast as can be.
    const uint32_t could =
        node.source >= 0 ? run.nodes[static_cast<size_t>(node.source)].status.pieces() : most;
    const bool lags = have < could / 2 && could - have > kLagPieces;
    node.slow = !Whole(run, node) && (lags || (node.slow && most - have > kLagPieces));
    // Its link to the controller may be what is slow. Without another way it is left alone: told of
    // the controller again, it would ask again for what is on its way.
    if (lags && node.source == kController && now_ns - node.moved_ns > kMoveNs &&
        ChooseSource(run, i) != kController) {
      node.source = kNoSource;
    }
  }
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    StageNode& node = run.nodes[i];
    if (node.source < 0 || node.ended() || Whole(run, node)) continue;
    const StageNode& source = run.nodes[static_cast<size_t>(node.source)];
    if (source.slow || source.failed()) {
      node.source = kNoSource;
    } else if (now_ns - std::max(node.progress_ns, node.moved_ns) > kStallNs &&
               source.status.pieces() > node.status.pieces()) {
      BanSource(run, i);
    }
  }
}

bool ThroughController(const StageRun& run, size_t node) {
  return run.nodes[node].source == kController && !run.nodes[node].banned.empty();
}

}  // namespace muster::stage
