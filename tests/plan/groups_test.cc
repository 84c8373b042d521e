#include "controller/plan/groups.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "plan_testing.h"

// Groups against an oracle that is written after Megatron's algorithm and shares nothing with ours:
// RankGenerator and generate_masked_orthogonal_rank_groups, which work on an order string, a mask
// of the dimensions of a group, and prefix products (megatron/core/parallel_state.py).

namespace muster::plan {
namespace {

using Rank = uint32_t;
using Group = std::vector<Rank>;

class Oracle {
 public:
  Oracle(uint32_t tp, uint32_t cp, uint32_t dp, uint32_t pp)
      : names_({"tp", "cp", "ep", "dp", "pp"}), sizes_({tp, cp, 1, dp, pp}) {}

  // `token`: "tp", "dp-cp", ... in any order.
  std::vector<Group> Groups(const std::string& token) const {
    const std::vector<std::string> wanted = Split(token);
    std::vector<uint32_t> masked;
    std::vector<uint32_t> unmasked;
    std::vector<uint32_t> masked_stride;
    std::vector<uint32_t> unmasked_stride;
    uint32_t stride = 1;
    for (size_t i = 0; i < names_.size(); ++i) {
      const bool mask = std::find(wanted.begin(), wanted.end(), names_[i]) != wanted.end();
      (mask ? masked : unmasked).push_back(sizes_[i]);
      (mask ? masked_stride : unmasked_stride).push_back(stride);
      stride *= sizes_[i];
    }
    const uint32_t group_size = Product(masked);
    const uint32_t count = stride / group_size;
    std::vector<Group> out;
    for (uint32_t g = 0; g < count; ++g) {
      const std::vector<uint32_t> fixed = Decompose(g, unmasked);
      Group group;
      for (uint32_t r = 0; r < group_size; ++r) {
        const std::vector<uint32_t> varying = Decompose(r, masked);
        group.push_back(Inner(varying, masked_stride) + Inner(fixed, unmasked_stride));
      }
      out.push_back(std::move(group));
    }
    return out;
  }

 private:
  static std::vector<std::string> Split(std::string token) {
    std::vector<std::string> out;
    for (size_t at = token.find('-'); at != std::string::npos; at = token.find('-')) {
      out.push_back(token.substr(0, at));
      token.erase(0, at + 1);
    }
    out.push_back(token);
    return out;
  }
  static uint32_t Product(const std::vector<uint32_t>& v) {
    return std::accumulate(v.begin(), v.end(), 1U, std::multiplies<>());
  }
  static uint32_t Inner(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0U);
  }
  // index -> coordinates, the first dimension fastest.
  static std::vector<uint32_t> Decompose(uint32_t index, const std::vector<uint32_t>& shape) {
    std::vector<uint32_t> out;
    uint32_t prefix = 1;
    for (const uint32_t size : shape) {
      out.push_back(index / prefix % size);
      prefix *= size;
    }
    return out;
  }

  std::vector<std::string> names_;
  std::vector<uint32_t> sizes_;
};

// The token that Megatron asks its generator for.
std::string TokenOf(const GroupInfo& info) {
  if (info.kind == GroupKind::kEmbedding || info.kind == GroupKind::kPositionEmbedding) return "pp";
  return std::string(info.name);
}

// default_embedding_ranks and default_position_embedding_ranks.
Group Thinned(GroupKind kind, const Group& pipeline) {
  if (kind == GroupKind::kPositionEmbedding) return {pipeline.front()};
  if (kind != GroupKind::kEmbedding || pipeline.size() == 1) return pipeline;
  return {pipeline.front(), pipeline.back()};
}

v1::Plan PlanOf(uint32_t tp, uint32_t cp, uint32_t dp, uint32_t pp, uint32_t per_host) {
  const uint32_t world = tp * cp * dp * pp;
  std::string hostfile;
  for (uint32_t left = world, host = 0; left > 0; ++host) {
    const uint32_t here = std::min(left, per_host);
    hostfile += "n" + std::to_string(host) + " slots=" + std::to_string(here) + "\n";
    left -= here;
  }
  v1::JobSpec spec = Job(hostfile, {"x"});
  *spec.mutable_parallel() = Sized(tp, pp, cp);
  return *MakePlan(spec);
}

RC_GTEST_PROP(Groups, EqualMegatrons, ()) {
  const auto size = [] {
    return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<uint32_t>(1, 6));
  };
  const uint32_t tp = size();
  const uint32_t cp = size();
  const uint32_t dp = size();
  const uint32_t pp = size();
  const v1::Plan plan = PlanOf(tp, cp, dp, pp, 8);
  const Oracle oracle(tp, cp, dp, pp);
  for (const GroupInfo& info : GroupKinds()) {
    std::vector<Group> want;
    for (const Group& group : oracle.Groups(TokenOf(info))) {
      want.push_back(Thinned(info.kind, group));
    }
    RC_ASSERT(Groups(plan, info.kind) == want);
  }
}

RC_GTEST_PROP(Groups, PartitionTheRanks, ()) {
  const auto size = [] { return *rc::gen::inRange<uint32_t>(1, 5); };
  const v1::Plan plan = PlanOf(size(), size(), size(), size(), 4);
  for (const GroupInfo& info : GroupKinds()) {
    if (info.kind == GroupKind::kEmbedding || info.kind == GroupKind::kPositionEmbedding) continue;
    std::multiset<Rank> seen;
    for (const Group& group : Groups(plan, info.kind)) seen.insert(group.begin(), group.end());
    RC_ASSERT(seen.size() == plan.world());
    RC_ASSERT(std::set<Rank>(seen.begin(), seen.end()).size() == plan.world());
  }
}

TEST(Groups, SpreadSaysWhatCrossesHosts) {
  const v1::Plan plan = PlanOf(2, 1, 4, 2, 8);  // 16 ranks on two hosts
  const GroupSpread pp = Spread(plan, GroupKind::kPp);
  EXPECT_EQ(pp.count, 8U);
  EXPECT_EQ(pp.size, 2U);
  EXPECT_EQ(pp.crossing, 8U);
  EXPECT_EQ(pp.example, (Group{0, 8}));
  EXPECT_EQ(Spread(plan, GroupKind::kTp).crossing, 0U);
  EXPECT_EQ(Spread(plan, GroupKind::kDp).crossing, 0U);
  // Five slots a host: the third TP group has a rank on each.
  const GroupSpread tp = Spread(PlanOf(2, 1, 4, 2, 5), GroupKind::kTp);
  EXPECT_EQ(tp.crossing, 2U);  // 4-5 and 14-15
  EXPECT_EQ(tp.example, (Group{4, 5}));
}

// Megatron's own example: 16 ranks, TP 2, PP 4.
TEST(Groups, EmbeddingGroupsAreTheEnds) {
  const v1::Plan plan = PlanOf(2, 1, 2, 4, 8);
  EXPECT_EQ(Groups(plan, GroupKind::kEmbedding),
            (std::vector<Group>{{0, 12}, {1, 13}, {2, 14}, {3, 15}}));
  EXPECT_EQ(Groups(plan, GroupKind::kPositionEmbedding), (std::vector<Group>{{0}, {1}, {2}, {3}}));
}

}  // namespace
}  // namespace muster::plan
