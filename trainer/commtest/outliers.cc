#include "trainer/commtest/outliers.h"

#include <algorithm>
#include <cmath>

#include "trainer/commtest/sweep.h"

namespace muster::commtest {
namespace {

constexpr size_t kFewestPairs = 3;
// A pair is odd when it is this much worse than usual ...
constexpr double kRatio = 3;
// ... and by so many robust standard deviations (1.4826 MAD) of the better pairs ...
constexpr double kDeviations = 6;
constexpr double kMadToSigma = 1.4826;
// ... and, in latency, by so many times its own scatter (median less best): what a busy machine
// adds comes and goes, a slow way stays.
constexpr double kScatters = 2;

struct Usual {
  double value = 0;
  double spread = 0;
};

// Of times, so more is worse. One slow host among n makes 2/n of all pairs slow: half of them with
// four hosts. So the usual is the lower quartile, and the spread that of the pairs up to it, not
// those of all.
Usual UsualOf(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const size_t quarter = (times.size() - 1) / 4;
  const Usual usual{times[quarter], 0};
  std::vector<double> distances;
  for (size_t i = 0; i <= quarter; ++i) distances.push_back(usual.value - times[i]);
  return {usual.value, kMadToSigma * Median(distances)};
}

bool IsOdd(double time, const Usual& usual, double scatter) {
  return time > kRatio * usual.value && time > usual.value + kDeviations * usual.spread &&
         time > usual.value + kScatters * scatter;
}

}  // namespace

Oddities FindOddities(const std::vector<PairRow>& rows, int64_t places) {
  Oddities out;
  if (rows.size() < kFewestPairs) return out;
  std::vector<double> latencies;
  std::vector<double> transfers;  // seconds a byte
  for (const PairRow& row : rows) {
    latencies.push_back(row.latency);
    transfers.push_back(row.bandwidth > 0 ? 1 / row.bandwidth : INFINITY);
  }
  const Usual latency = UsualOf(latencies);
  const Usual transfer = UsualOf(transfers);
  out.usual_latency = latency.value;
  out.usual_bandwidth = transfer.value > 0 ? 1 / transfer.value : 0;
  std::vector<int64_t> odd(static_cast<size_t>(places));
  for (size_t i = 0; i < rows.size(); ++i) {
    const double scatter = rows[i].median_latency - rows[i].latency;
    const OddPair pair{i, IsOdd(latencies[i], latency, scatter), IsOdd(transfers[i], transfer, 0)};
    if (!pair.slow_latency && !pair.slow_bandwidth) continue;
    out.pairs.push_back(pair);
    ++odd[static_cast<size_t>(rows[i].a)];
    ++odd[static_cast<size_t>(rows[i].b)];
  }
  for (int64_t place = 0; place < places; ++place) {
    const int64_t mine = odd[static_cast<size_t>(place)];
    if (mine == places - 1 && out.pairs.size() < rows.size()) out.places.push_back(place);
  }
  return out;
}

}  // namespace muster::commtest
