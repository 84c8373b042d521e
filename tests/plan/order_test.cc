#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <string>

#include "plan_testing.h"

// Rank order against an oracle that knows nothing of our formula: Megatron's generator of
// orthogonal rank groups (megatron/core/parallel_state.py), written here as "all ranks whose other
// coordinates agree", with the coordinates found by counting through the order tp-cp-dp-pp as an
// odometer does.

namespace muster::plan {
namespace {

using Groups = std::set<std::vector<uint32_t>>;

Groups OracleGroups(const std::vector<uint32_t>& sizes, size_t dimension) {
  std::map<std::vector<uint32_t>, std::vector<uint32_t>> groups;
  std::vector<uint32_t> odometer(sizes.size(), 0);
  uint32_t world = 1;
  for (const uint32_t size : sizes) world *= size;
  for (uint32_t rank = 0; rank < world; ++rank) {
    std::vector<uint32_t> others = odometer;
    others[dimension] = 0;
    groups[others].push_back(rank);
    for (size_t d = 0; d < sizes.size() && ++odometer[d] == sizes[d]; ++d) odometer[d] = 0;
  }
  Groups out;
  for (const auto& [key, ranks] : groups) out.insert(ranks);
  return out;
}

Groups PlanGroups(const v1::Plan& plan, size_t dimension) {
  std::map<std::vector<uint32_t>, std::vector<uint32_t>> groups;
  for (const v1::RankPlan& rank : plan.ranks()) {
    std::vector<uint32_t> others = {rank.tp(), rank.cp(), rank.dp(), rank.pp()};
    others[dimension] = 0;
    groups[others].push_back(rank.rank());
  }
  Groups out;
  for (const auto& [key, ranks] : groups) out.insert(ranks);
  return out;
}

RC_GTEST_PROP(RankOrder, GroupsAreMegatrons, ()) {
  const auto size = [] { return *rc::gen::inRange<uint32_t>(1, 5); };
  const uint32_t tp = size();
  const uint32_t cp = size();
  const uint32_t dp = size();
  const uint32_t pp = size();
  v1::JobSpec spec = Job("a slots=" + std::to_string(tp * cp * dp * pp) + "\n", {"x"});
  *spec.mutable_parallel() = Sized(tp, pp, cp);
  const auto plan = MakePlan(spec);
  RC_ASSERT(plan.ok());
  for (size_t dimension = 0; dimension < 4; ++dimension) {
    RC_ASSERT(PlanGroups(*plan, dimension) == OracleGroups({tp, cp, dp, pp}, dimension));
  }
}

// The example in Megatron's documentation of initialize_model_parallel: 16 GPUs, TP 2, PP 4.
TEST(RankOrder, MegatronsOwnExample) {
  v1::JobSpec spec = Job("a slots=8\nb slots=8\n", {"x"});
  *spec.mutable_parallel() = Sized(2, 4, 1);
  const auto plan = MakePlan(spec);
  EXPECT_EQ(PlanGroups(*plan, 2),
            (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
  EXPECT_EQ(PlanGroups(*plan, 0),
            (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}}));
  EXPECT_EQ(PlanGroups(*plan, 3),
            (Groups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));
}

// Every rank sits on exactly one slot, in hostfile order.
RC_GTEST_PROP(RankOrder, RanksFillTheHostsInOrder, ()) {
  const auto slots = *rc::gen::nonEmpty(
      rc::gen::container<std::vector<uint32_t>>(rc::gen::inRange<uint32_t>(1, 9)));
  std::string hostfile;
  for (size_t i = 0; i < slots.size(); ++i) {
    hostfile += "n" + std::to_string(i) + " slots=" + std::to_string(slots[i]) + "\n";
  }
  const auto plan = MakePlan(Job(hostfile, {"x"}));
  RC_ASSERT(plan.ok());
  uint32_t rank = 0;
  for (size_t node = 0; node < slots.size(); ++node) {
    for (uint32_t local = 0; local < slots[node]; ++local, ++rank) {
      const v1::RankPlan& got = plan->ranks(static_cast<int>(rank));
      RC_ASSERT(got.rank() == rank);
      RC_ASSERT(got.node() == node);
      RC_ASSERT(got.local_rank() == local);
    }
  }
  RC_ASSERT(plan->world() == rank);
}

}  // namespace
}  // namespace muster::plan
