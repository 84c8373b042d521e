#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/commtest/pairs.h"

// Which pairs are odd, and whether one host explains them. Pure; the rule is in docs/commtest.md.

namespace muster::commtest {

struct OddPair {
  size_t row = 0;  // of the table of pairs
  bool slow_latency = false;
  bool slow_bandwidth = false;
};

struct Oddities {
  double usual_latency = 0;  // of the better pairs
  double usual_bandwidth = 0;
  std::vector<OddPair> pairs;   // in the table's order
  std::vector<int64_t> places;  // hosts all of whose pairs are odd, while other pairs are not
};

// Nothing is odd among fewer than three pairs: there is nothing to compare with.
Oddities FindOddities(const std::vector<PairRow>& rows, int64_t places);

}  // namespace muster::commtest
