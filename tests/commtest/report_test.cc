#include "trainer/commtest/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster::commtest {
namespace {

using testing::HasSubstr;

// Four hosts, the third of which is slow.
Report Sample() {
  Report report;
  report.backend = "gloo";
  report.host_of_rank = {"n1", "n2", "n3", "n4"};
  report.places = PlacesOf(report.host_of_rank);
  report.sweep = {{Collective::kAllReduce, 4096, 1024, 200e-6, 0, -1}};
  for (const auto& round : PairRounds(4)) {
    PairRow row{.a = round[0].first, .b = round[0].second};
    const bool slow = row.a == 2 || row.b == 2;
    row.latency = row.median_latency = slow ? 0.04 : 100e-6;
    row.bandwidth = slow ? 5e7 : 2e9;
    report.pairs.push_back(row);
  }
  report.oddities = FindOddities(report.pairs, 4);
  return report;
}

TEST(Report, ColumnsOfNcclTests) {
  const Report report = Sample();
  EXPECT_EQ(HeaderText(report), "# muster-commtest: 4 ranks on 4 hosts, gloo\n");
  EXPECT_EQ(RowText(report.sweep[0], Type::kFloat, 4),
            "        4096          1024     float     sum      200.00    0.020    0.031       0\n");
  EXPECT_THAT(CollectiveHeader(Collective::kAllReduce), HasSubstr("algbw"));
  EXPECT_THAT(SweepEnd(report), HasSubstr("# wrong elements: 0 OK\n"));
}

TEST(Report, AnOddHostIsNamedOnceWithItsFigures) {
  const std::string text = VerdictText(Sample());
  EXPECT_EQ(
      text,
      "odd host: n3: all of its 3 pairs are slow, as with n1: latency 40000.0 us where 100.0 us "
      "is usual, 0.050 GB/s where 2.000 GB/s is usual; look at its interface, cable and switch "
      "port, and at what else runs there\n");
  EXPECT_THAT(PairsText(Sample()), HasSubstr("n2    n3         40000.0       40000.0       0.050"
                                             "       0  << latency, bandwidth\n"));
}

TEST(Report, AnOddPairIsNamed) {
  Report report = Sample();
  for (PairRow& row : report.pairs) {
    row.latency = row.a == 0 && row.b == 2 ? 0.04 : 100e-6;
    row.bandwidth = 2e9;
  }
  report.oddities = FindOddities(report.pairs, 4);
  EXPECT_EQ(VerdictText(report),
            "odd pair: n1 and n3: latency 40000.0 us where 100.0 us is usual\n");
}

TEST(Report, WrongDataNamesThePlace) {
  Report report = Sample();
  EXPECT_TRUE(WrongData(report).empty());
  report.sweep[0].wrong = 12;
  report.sweep[0].wrong_rank = 1;
  report.pairs[0].wrong_at_b = 3;
  EXPECT_THAT(
      WrongData(report),
      testing::ElementsAre("12 wrong elements in all_reduce of 4096 bytes, first at rank 1 (n2)",
                           "3 wrong elements from n1 to n2"));
  EXPECT_THAT(SweepEnd(report), HasSubstr("12 FAILED"));
  EXPECT_THAT(VerdictText(report), HasSubstr("wrong data: 3 wrong elements from n1 to n2\n"));
}

TEST(Report, Json) {
  const auto json = nlohmann::json::parse(JsonText(Sample()));
  EXPECT_EQ(json["odd_hosts"], nlohmann::json::array({"n3"}));
  EXPECT_EQ(json["pairs"].size(), 6u);
  EXPECT_EQ(json["pairs"][1]["odd"], (nlohmann::json::array({"latency", "bandwidth"})));
  EXPECT_EQ(json["collectives"][0]["op"], "all_reduce");
  EXPECT_DOUBLE_EQ(json["collectives"][0]["time_us"], 200);
  EXPECT_TRUE(json["wrong_data"].empty());
}

TEST(Report, ALargeTableShowsWhatMatters) {
  Report report;
  for (int i = 0; i < 40; ++i) report.host_of_rank.push_back("n" + std::to_string(i));
  report.places = PlacesOf(report.host_of_rank);
  for (const auto& round : PairRounds(40)) {
    for (const auto& [a, b] : round) {
      report.pairs.push_back({.a = a,
                              .b = b,
                              .latency = 1e-4,
                              .median_latency = 1e-4,
                              .bandwidth = 1e9,
                              .wrong_at_a = 0,
                              .wrong_at_b = 0});
    }
  }
  report.pairs[7].latency = 1;
  report.oddities = FindOddities(report.pairs, 40);
  const std::string text = PairsText(report);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
  EXPECT_THAT(text, HasSubstr("# and 779 usual pairs: about 100.0 us, 1.000 GB/s\n"));
}

}  // namespace
}  // namespace muster::commtest
