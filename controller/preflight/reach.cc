#include "controller/preflight/reach.h"

#include <algorithm>
#include <set>
#include <utility>

namespace muster::preflight {
namespace {

bool Answered(const NodeFacts& node) {
  return node.absent.empty() && node.probe.has_network();
}

}  // namespace

Reach::Reach(const Nodes& nodes) {
  const auto second = SecondNames(nodes);
  for (size_t from = 0; from < nodes.size(); ++from) {
    if (!Answered(nodes[from]) || second.contains(from)) continue;
    for (const v1::PeerResult& peer : nodes[from].probe.network().connected()) {
      const size_t to = peer.node();
      if (to >= nodes.size() || !Answered(nodes[to]) || second.contains(to) ||
          !nodes[to].probe.network().listen_error().empty()) {
        continue;
      }
      edges_.push_back({from, to, peer.error(), peer.address()});
    }
  }
  nothing_works_ = edges_.size() > 1 && std::all_of(edges_.begin(), edges_.end(),
                                                    [](const Edge& e) { return !e.error.empty(); });
  if (nothing_works_) return;
  FindOdd(nodes.size());
  FindPairs(nodes.size());
}

std::vector<Reach::Tally> Reach::Count(size_t nodes) const {
  std::vector<Tally> tallies(nodes);
  for (const Edge& edge : edges_) {
    Tally& from = tallies[edge.from];
    Tally& to = tallies[edge.to];
    ++from.out;
    ++to.in;
    if (edge.error.empty()) continue;
    ++from.out_failed;
    ++to.in_failed;
    from.error = to.error = edge.error;
  }
  return tallies;
}

void Reach::FindOdd(size_t nodes) {
  // One after the other: with the edges of an odd node gone, its peers are no longer odd.
  for (const Fault fault : {Fault::kIsolated, Fault::kDeaf, Fault::kMute}) {
    while (true) {
      const std::vector<Tally> tallies = Count(nodes);
      size_t worst = nodes;
      size_t most = 1;  // of one peer only a pair can be told
      for (size_t i = 0; i < nodes; ++i) {
        const Tally& t = tallies[i];
        const bool deaf = t.in > 0 && t.in_failed == t.in;
        const bool mute = t.out > 0 && t.out_failed == t.out;
        const bool odd = fault == Fault::kIsolated ? deaf && mute
                         : fault == Fault::kDeaf   ? deaf
                                                   : mute;
        const size_t failed = fault == Fault::kMute ? t.out_failed : t.in_failed;
        if (odd && failed > most) {
          worst = i;
          most = failed;
        }
      }
      if (worst == nodes) break;
      odd_.push_back({worst, fault, most, tallies[worst].error});
      std::erase_if(edges_, [&](const Edge& edge) {
        return (fault != Fault::kMute && edge.to == worst) ||
               (fault != Fault::kDeaf && edge.from == worst);
      });
    }
  }
}

void Reach::FindPairs(size_t nodes) {
  const std::vector<Tally> tallies = Count(nodes);
  std::set<std::pair<size_t, size_t>> failed;
  for (const Edge& edge : edges_) {
    if (!edge.error.empty()) failed.emplace(edge.from, edge.to);
  }
  const auto failures = [&](size_t i) { return tallies[i].in_failed + tallies[i].out_failed; };
  for (const Edge& edge : edges_) {
    if (edge.error.empty()) continue;
    const bool both = failed.contains({edge.to, edge.from});
    const bool first = failures(edge.from) != failures(edge.to)
                           ? failures(edge.from) > failures(edge.to)
                           : edge.from < edge.to;
    if (both && !first) continue;
    pairs_.push_back({edge, both});
  }
}

}  // namespace muster::preflight
