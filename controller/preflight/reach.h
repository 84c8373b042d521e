#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "controller/preflight/check_functions.h"

namespace muster::preflight {

// Who reached whom, from the answers of all nodes. Edges into a node that could not listen, and
// those of nodes without an answer, or that are an earlier node under a second name, are left out:
// they accuse nobody. Pure.
class Reach {
 public:
  explicit Reach(const Nodes& nodes);

  struct Edge {
    size_t from = 0;
    size_t to = 0;
    std::string error;    // empty = reached
    std::string address;  // as `from` resolves it
  };

  // The odd nodes, before single pairs are looked at: all of their edges fail, so that they and not
  // their peers are to be named.
  enum class Fault { kIsolated, kDeaf, kMute };  // both ways; nobody gets in; it gets nowhere
  struct Odd {
    size_t node = 0;
    Fault fault = Fault::kIsolated;
    size_t peers = 0;   // that were tried
    std::string error;  // of one of them
  };
  const std::vector<Odd>& odd() const { return odd_; }

  // What is left: pairs, each once, the node with more failures first.
  struct Pair {
    Edge edge;
    bool both_ways = false;
  };
  const std::vector<Pair>& pairs() const { return pairs_; }

  // Not one connection between any two nodes was possible.
  bool nothing_works() const { return nothing_works_; }

 private:
  struct Tally {
    size_t in = 0, in_failed = 0, out = 0, out_failed = 0;
    std::string error;
  };
  std::vector<Tally> Count(size_t nodes) const;
  void FindOdd(size_t nodes);
  void FindPairs(size_t nodes);

  std::vector<Edge> edges_;
  std::vector<Odd> odd_;
  std::vector<Pair> pairs_;
  bool nothing_works_ = false;
};

}  // namespace muster::preflight
