#include "trainer/commtest/pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "trainer/commtest/sweep.h"

namespace muster::commtest {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

constexpr int64_t kMostOneByOne = 16;
constexpr int64_t kSmallBytes = 8;
constexpr int64_t kWarmup = 2;

// This rank's half of a pair's round trips of one size. The first to send also measures.
struct HalfResult {
  double best = 0;  // of the round trips
  double median = 0;
  int64_t wrong = 0;
};

HalfResult RoundTrips(Group& group, int64_t peer, bool first, int64_t bytes, int64_t iterations,
                      Type type) {
  const int64_t count = std::max<int64_t>(bytes / SizeOf(type), 1);
  at::Tensor sent = group.Allocate(count, type);
  at::Tensor received = group.Allocate(count, type);
  parallel::Communicator& data = group.data();
  HalfResult result;
  std::vector<double> times;
  for (int64_t call = 0; call < kWarmup + iterations; ++call) {
    group.FillWith(sent, Given(group.rank(), count, call));
    const auto start = steady_clock::now();
    if (first) {
      data.Send(sent, peer);
      data.Receive(received, peer);
    } else {
      data.Receive(received, peer);
      data.Send(sent, peer);
    }
    data.Synchronize();
    if (call >= kWarmup) times.push_back(duration<double>(steady_clock::now() - start).count());
    result.wrong += group.WrongIn(received, Given(peer, count, call));
  }
  result.best = *std::min_element(times.begin(), times.end());
  result.median = Median(times);
  return result;
}

// What the two ranks of a pair find out, in the columns of the table that all ranks add up.
constexpr size_t kColumns = 5;

void MeasurePair(Group& group, int64_t peer, bool first, const Options& options, double* columns) {
  const HalfResult small =
      RoundTrips(group, peer, first, kSmallBytes, options.pair_iterations, options.type);
  const HalfResult large =
      RoundTrips(group, peer, first, options.pair_bytes,
                 std::max<int64_t>(options.pair_iterations / 4, 3), options.type);
  columns[first ? 3 : 4] = static_cast<double>(small.wrong + large.wrong);
  if (!first) return;
  columns[0] = small.best / 2;
  columns[1] = small.median / 2;
  columns[2] = AlgorithmBandwidth(options.pair_bytes, large.best / 2);
}

}  // namespace

std::vector<Place> PlacesOf(const std::vector<std::string>& host_of_rank) {
  std::vector<Place> places;
  for (size_t rank = 0; rank < host_of_rank.size(); ++rank) {
    const auto known = std::find_if(places.begin(), places.end(), [&](const Place& place) {
      return place.name == host_of_rank[rank];
    });
    if (known == places.end()) {
      places.push_back({host_of_rank[rank], static_cast<int64_t>(rank)});
    }
  }
  if (places.size() != 1) return places;
  const std::string host = places[0].name;
  places.clear();
  for (size_t rank = 0; rank < host_of_rank.size(); ++rank) {
    places.push_back({fmt::format("{} rank {}", host, rank), static_cast<int64_t>(rank)});
  }
  return places;
}

std::vector<std::vector<PairIndex>> PairRounds(int64_t places) {
  std::vector<std::vector<PairIndex>> rounds;
  if (places <= kMostOneByOne) {
    for (int64_t a = 0; a < places; ++a) {
      for (int64_t b = a + 1; b < places; ++b) rounds.push_back({{a, b}});
    }
    return rounds;
  }
  // The circle method: one place stays, the others move around it. An odd number gets a gap.
  const int64_t seats = places + places % 2;
  for (int64_t round = 0; round + 1 < seats; ++round) {
    const auto at = [&](int64_t seat) {
      return seat == 0 ? 0 : 1 + (seat - 1 + round) % (seats - 1);
    };
    std::vector<PairIndex>& pairs = rounds.emplace_back();
    for (int64_t seat = 0; seat < seats / 2; ++seat) {
      const auto [a, b] = std::minmax({at(seat), at(seats - 1 - seat)});
      if (b < places) pairs.emplace_back(a, b);
    }
  }
  return rounds;
}

std::vector<PairRow> MeasurePairs(Group& group, const std::vector<Place>& places,
                                  const Options& options) {
  std::vector<PairRow> rows;
  std::vector<double> columns;
  for (const auto& round : PairRounds(static_cast<int64_t>(places.size()))) {
    group.Barrier();
    for (const auto& [a, b] : round) {
      rows.push_back({.a = a, .b = b});
      columns.resize(rows.size() * kColumns);
      const int64_t rank_a = places[static_cast<size_t>(a)].rank;
      const int64_t rank_b = places[static_cast<size_t>(b)].rank;
      double* const mine = &columns[(rows.size() - 1) * kColumns];
      if (group.rank() == rank_a) MeasurePair(group, rank_b, true, options, mine);
      if (group.rank() == rank_b) MeasurePair(group, rank_a, false, options, mine);
    }
  }
  group.Reduce(columns, parallel::ReduceOp::kSum);
  for (size_t i = 0; i < rows.size(); ++i) {
    const double* const values = &columns[i * kColumns];
    rows[i].latency = values[0];
    rows[i].median_latency = values[1];
    rows[i].bandwidth = values[2];
    rows[i].wrong_at_a = static_cast<int64_t>(values[3]);
    rows[i].wrong_at_b = static_cast<int64_t>(values[4]);
  }
  return rows;
}

}  // namespace muster::commtest
