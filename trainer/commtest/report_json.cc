#include <nlohmann/json.hpp>

#include "common/version.h"
#include "trainer/commtest/report.h"

namespace muster::commtest {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMicro = 1e6;
constexpr double kGiga = 1e-9;

Json CollectiveJson(const Report& report, const SweepRow& row) {
  const auto ranks = static_cast<int64_t>(report.host_of_rank.size());
  return {{"op", Name(row.collective)},
          {"size", row.bytes},
          {"count", row.count},
          {"redop", ReduceName(row.collective)},
          {"time_us", row.seconds * kMicro},
          {"algbw_gbps", AlgorithmBandwidth(row.bytes, row.seconds) * kGiga},
          {"busbw_gbps", BusBandwidth(row.collective, row.bytes, row.seconds, ranks) * kGiga},
          {"wrong", row.wrong}};
}

Json PairJson(const Report& report, size_t index) {
  const PairRow& row = report.pairs[index];
  Json odd = Json::array();
  for (const OddPair& pair : report.oddities.pairs) {
    if (pair.row != index) continue;
    if (pair.slow_latency) odd.push_back("latency");
    if (pair.slow_bandwidth) odd.push_back("bandwidth");
  }
  return {{"a", report.places[static_cast<size_t>(row.a)].name},
          {"b", report.places[static_cast<size_t>(row.b)].name},
          {"latency_us", row.latency * kMicro},
          {"median_latency_us", row.median_latency * kMicro},
          {"bandwidth_gbps", row.bandwidth * kGiga},
          {"wrong_a_to_b", row.wrong_at_b},
          {"wrong_b_to_a", row.wrong_at_a},
          {"odd", odd}};
}

}  // namespace

std::string JsonText(const Report& report) {
  Json out;
  out["program"] = "muster-commtest";
  out["version"] = kVersion;
  out["backend"] = report.backend;
  out["datatype"] = Name(report.type);
  out["hosts_by_rank"] = report.host_of_rank;
  out["collectives"] = Json::array();
  for (const SweepRow& row : report.sweep)
    out["collectives"].push_back(CollectiveJson(report, row));
  out["pairs"] = Json::array();
  for (size_t i = 0; i < report.pairs.size(); ++i) out["pairs"].push_back(PairJson(report, i));
  out["usual"] = {{"latency_us", report.oddities.usual_latency * kMicro},
                  {"bandwidth_gbps", report.oddities.usual_bandwidth * kGiga}};
  out["odd_hosts"] = Json::array();
  for (const int64_t place : report.oddities.places) {
    out["odd_hosts"].push_back(report.places[static_cast<size_t>(place)].name);
  }
  out["wrong_data"] = WrongData(report);
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace muster::commtest
