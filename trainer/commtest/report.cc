#include "trainer/commtest/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace muster::commtest {
namespace {

constexpr size_t kMostPairsShown = 120;
constexpr double kMicro = 1e6;
constexpr double kGiga = 1e-9;

const std::string& NameOf(const Report& report, int64_t place) {
  return report.places[static_cast<size_t>(place)].name;
}

double BusOf(const Report& report, const SweepRow& row) {
  return BusBandwidth(row.collective, row.bytes, row.seconds,
                      static_cast<int64_t>(report.host_of_rank.size()));
}

const OddPair* OddPairOf(const Report& report, size_t row) {
  for (const OddPair& pair : report.oddities.pairs) {
    if (pair.row == row) return &pair;
  }
  return nullptr;
}

std::string Marks(const OddPair* odd) {
  if (odd == nullptr) return "";
  if (odd->slow_latency && odd->slow_bandwidth) return "  << latency, bandwidth";
  return odd->slow_latency ? "  << latency" : "  << bandwidth";
}

// "latency 40123.0 us where 151.2 us is usual, 0.05 GB/s where 2.10 GB/s is usual"
std::string Compare(const Report& report, const OddPair& odd) {
  const PairRow& row = report.pairs[odd.row];
  std::vector<std::string> parts;
  if (odd.slow_latency) {
    parts.push_back(fmt::format("latency {:.1f} us where {:.1f} us is usual", row.latency * kMicro,
                                report.oddities.usual_latency * kMicro));
  }
  if (odd.slow_bandwidth) {
    parts.push_back(fmt::format("{:.3f} GB/s where {:.3f} GB/s is usual", row.bandwidth * kGiga,
                                report.oddities.usual_bandwidth * kGiga));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

bool Explained(const Report& report, const PairRow& row) {
  const auto& odd = report.oddities.places;
  return std::find(odd.begin(), odd.end(), row.a) != odd.end() ||
         std::find(odd.begin(), odd.end(), row.b) != odd.end();
}

// The worst pair of a place.
const OddPair& WorstPairOf(const Report& report, int64_t place) {
  const OddPair* worst = nullptr;
  for (const OddPair& odd : report.oddities.pairs) {
    const PairRow& row = report.pairs[odd.row];
    if (row.a != place && row.b != place) continue;
    if (worst == nullptr || row.latency > report.pairs[worst->row].latency) worst = &odd;
  }
  return *worst;
}

}  // namespace

std::string HeaderText(const Report& report) {
  const std::set<std::string> hosts(report.host_of_rank.begin(), report.host_of_rank.end());
  return fmt::format("# muster-commtest: {} ranks on {} {}, {}\n", report.host_of_rank.size(),
                     hosts.size(), hosts.size() == 1 ? "host" : "hosts", report.backend);
}

std::string CollectiveHeader(Collective collective) {
  return fmt::format(
      "#\n# {}\n# {:>10}  {:>12}  {:>8}  {:>6}  {:>10}  {:>7}  {:>7}  {:>6}\n"
      "# {:>10}  {:>12}  {:>8}  {:>6}  {:>10}  {:>7}  {:>7}  {:>6}\n",
      Name(collective), "size", "count", "type", "redop", "time", "algbw", "busbw", "#wrong", "(B)",
      "(elements)", "", "", "(us)", "(GB/s)", "(GB/s)", "");
}

std::string RowText(const SweepRow& row, Type type, int64_t ranks) {
  return fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>10.2f}  {:>7.3f}  {:>7.3f}  {:>6}\n",
                     row.bytes, row.count, Name(type), ReduceName(row.collective),
                     row.seconds * kMicro, AlgorithmBandwidth(row.bytes, row.seconds) * kGiga,
                     BusBandwidth(row.collective, row.bytes, row.seconds, ranks) * kGiga,
                     row.wrong);
}

std::string SweepEnd(const Report& report) {
  if (report.sweep.empty()) return "";
  double bus = 0;
  int64_t wrong = 0;
  for (const SweepRow& row : report.sweep) {
    bus += BusOf(report, row);
    wrong += row.wrong;
  }
  return fmt::format("#\n# wrong elements: {} {}\n# average bus bandwidth: {:.3f} GB/s\n", wrong,
                     wrong == 0 ? "OK" : "FAILED",
                     bus * kGiga / static_cast<double>(report.sweep.size()));
}

std::string PairsText(const Report& report) {
  if (report.pairs.empty()) return "";
  size_t width = 4;
  for (const Place& place : report.places) width = std::max(width, place.name.size());
  std::string out =
      fmt::format("#\n# pairs\n# {:<{}}  {:<{}}  {:>12}  {:>12}  {:>10}  {:>6}\n", "host", width,
                  "host", width, "latency (us)", "median (us)", "(GB/s)", "#wrong");
  const bool all = report.pairs.size() <= kMostPairsShown;
  size_t hidden = 0;
  for (size_t i = 0; i < report.pairs.size(); ++i) {
    const PairRow& row = report.pairs[i];
    const OddPair* const odd = OddPairOf(report, i);
    const int64_t wrong = row.wrong_at_a + row.wrong_at_b;
    if (!all && odd == nullptr && wrong == 0) {
      ++hidden;
      continue;
    }
    out += fmt::format("  {:<{}}  {:<{}}  {:>12.1f}  {:>12.1f}  {:>10.3f}  {:>6}{}\n",
                       NameOf(report, row.a), width, NameOf(report, row.b), width,
                       row.latency * kMicro, row.median_latency * kMicro, row.bandwidth * kGiga,
                       wrong, Marks(odd));
  }
  if (hidden > 0) {
    out += fmt::format("# and {} usual pairs: about {:.1f} us, {:.3f} GB/s\n", hidden,
                       report.oddities.usual_latency * kMicro,
                       report.oddities.usual_bandwidth * kGiga);
  }
  return out;
}

std::string VerdictText(const Report& report) {
  std::string out;
  for (const int64_t place : report.oddities.places) {
    const OddPair& worst = WorstPairOf(report, place);
    const PairRow& row = report.pairs[worst.row];
    out += fmt::format(
        "odd host: {}: all of its {} pairs are slow, as with {}: {}; look at its interface, cable "
        "and "
        "switch port, and at what else runs there\n",
        NameOf(report, place), report.places.size() - 1,
        NameOf(report, row.a == place ? row.b : row.a), Compare(report, worst));
  }
  for (const OddPair& odd : report.oddities.pairs) {
    const PairRow& row = report.pairs[odd.row];
    if (Explained(report, row)) continue;
    out += fmt::format("odd pair: {} and {}: {}\n", NameOf(report, row.a), NameOf(report, row.b),
                       Compare(report, odd));
  }
  for (const std::string& wrong : WrongData(report)) out += "wrong data: " + wrong + "\n";
  return out;
}

std::vector<std::string> WrongData(const Report& report) {
  std::vector<std::string> out;
  for (const SweepRow& row : report.sweep) {
    if (row.wrong == 0) continue;
    out.push_back(fmt::format("{} wrong elements in {} of {} bytes, first at rank {} ({})",
                              row.wrong, Name(row.collective), row.bytes, row.wrong_rank,
                              report.host_of_rank[static_cast<size_t>(row.wrong_rank)]));
  }
  for (const PairRow& row : report.pairs) {
    const auto say = [&](int64_t wrong, int64_t from, int64_t to) {
      if (wrong == 0) return;
      out.push_back(fmt::format("{} wrong elements from {} to {}", wrong, NameOf(report, from),
                                NameOf(report, to)));
    };
    say(row.wrong_at_b, row.a, row.b);
    say(row.wrong_at_a, row.b, row.a);
  }
  return out;
}

}  // namespace muster::commtest
