#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trainer/commtest/group.h"
#include "trainer/commtest/options.h"

namespace muster::commtest {

// One place of the pair test: a host with the rank that speaks for it.
struct Place {
  std::string name;
  int64_t rank = 0;
};

// The hosts in order of their first ranks; with one host only, its ranks ("node1 rank 3").
std::vector<Place> PlacesOf(const std::vector<std::string>& host_of_rank);

// Rounds of pairs of 0..n-1: each pair once, nobody twice in a round. Few places: a pair a round,
// so that no other traffic disturbs it; many: n/2 pairs a round, or it would take too long.
using PairIndex = std::pair<int64_t, int64_t>;
std::vector<std::vector<PairIndex>> PairRounds(int64_t places);

struct PairRow {
  int64_t a = 0;  // index of the place; a < b
  int64_t b = 0;
  // Seconds one way: half a round trip of 8 bytes. The best of all trips is what the way can do,
  // since other load only makes it longer; the median is what it usually does.
  double latency = 0;
  double median_latency = 0;
  double bandwidth = 0;    // bytes a second one way: the best round trip of the large message
  int64_t wrong_at_a = 0;  // elements that came from b
  int64_t wrong_at_b = 0;
};

// Round trips of every pair, checked; all ranks call it and get the same rows.
std::vector<PairRow> MeasurePairs(Group& group, const std::vector<Place>& places,
                                  const Options& options);

}  // namespace muster::commtest
