#include "controller/plan/sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "controller/plan/nodes.h"
#include "plan_testing.h"

namespace muster::plan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string Error(std::string_view hostfile, const v1::Parallel& parallel) {
  v1::JobSpec spec = Job(hostfile, {"x"});
  *spec.mutable_parallel() = parallel;
  const auto plan = MakePlan(spec);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(plan.status().message());
}

TEST(Sizes, NotDivisibleSaysWhatWouldFit) {
  EXPECT_THAT(
      Error("a slots=8\nb slots=8\n", Sized(3, 1, 1)),
      AllOf(HasSubstr("16 slots are not divisible by TP 3 x PP 1 x CP 1 = 3"),
            HasSubstr("Nearest slot counts: 15 or 18."),
            HasSubstr("Nearest sizes for 16 slots: TP 2 x PP 1 x CP 1 or TP 4 x PP 1 x CP 1"),
            HasSubstr("--nproc-per-node 6 (12 slots)")));
  EXPECT_THAT(
      Error("a slots=4\n", Sized(2, 4, 1)),
      AllOf(HasSubstr("4 slots are fewer than TP 2 x PP 4 x CP 1 = 8"),
            HasSubstr("Nearest slot counts: 8."),
            HasSubstr("Nearest sizes for 4 slots: TP 1 x PP 4 x CP 1 or TP 2 x PP 2 x CP 1 or "
                      "TP 2 x PP 1 x CP 2.")));
}

TEST(Sizes, BatchThatDoesNotSplitSaysWhatWouldFit) {
  EXPECT_THAT(Error("a slots=8\n", Sized(1, 1, 1, 2, 100)),
              AllOf(HasSubstr("GBS 100 is not divisible by MBS 2 x DP 8 = 16"),
                    HasSubstr("Nearest global batches: 96 or 112."),
                    HasSubstr("Nearest slot counts: 5 or 10.")));
  EXPECT_THAT(Error("a slots=8\n", Sized(1, 4, 1, 1, 0, 6, 2)),
              AllOf(HasSubstr("6 micro-batches are not divisible by PP 4"),
                    HasSubstr("Nearest numbers of micro-batches: 4 or 8.")));
}

TEST(Sizes, MissingOrContradictingSizes) {
  EXPECT_THAT(Error("a slots=2\n", Sized(1, 1, 1, 1, 8, 8)), HasSubstr("exactly one"));
  EXPECT_THAT(Error("a slots=2\n", Sized(1, 1, 1, 1)), HasSubstr("exactly one"));
  EXPECT_THAT(Error("a slots=2\n", Sized(1, 1, 1, 0, 8)), HasSubstr("micro_batch is missing"));
  EXPECT_THAT(Error("a slots=2\n", Sized(1, 1, 1, 0, 0, 0, 2)), HasSubstr("VP 2 needs a pipeline"));
}

TEST(Sizes, HugeSizesDoNotWrap) {
  const uint32_t huge = 0xFFFFFFFF;
  EXPECT_THAT(Error("a slots=2\n", Sized(huge, huge, huge)), HasSubstr("fewer than"));
  EXPECT_THAT(Error("a slots=2\n", Sized(65536, 65536, 1)), HasSubstr("fewer than"));
  EXPECT_THAT(Error("a slots=2\n", Sized(1, 1, 1, huge, 0, huge)), HasSubstr("is more than"));
  EXPECT_THAT(Error("a slots=2\n", Sized(1, 1, 1, huge, huge)), HasSubstr("not divisible"));
}

// Ranges at full width from the first case on: small ones all fit.
rc::Gen<uint32_t> Number(uint32_t low, uint32_t high) {
  return rc::gen::resize(rc::kNominalSize, rc::gen::inRange<uint32_t>(low, high));
}

rc::Gen<v1::Parallel> AnyParallel() {
  return rc::gen::exec([] {
    const auto size = [] { return *Number(0, 9); };
    v1::Parallel p = Sized(size(), size(), size());
    p.set_vp(*Number(0, 3));
    const uint32_t batch = *Number(0, 3);
    if (batch > 0) p.set_micro_batch(*Number(1, 9));
    if (batch == 1) p.set_global_batch(*Number(1, 2000));
    if (batch == 2) p.set_num_microbatches(*Number(1, 40));
    return WithDefaults(p);
  });
}

RC_GTEST_PROP(SizesProperty, WhatFitsMultipliesOut, ()) {
  const auto world = *Number(1, 600);
  const v1::Parallel p = *AnyParallel();
  Sizes s;
  if (Fit(world, p, &s)) return;
  RC_ASSERT(s.tp * s.pp * s.cp * s.dp == world);
  RC_ASSERT(s.global_batch == s.micro_batch * s.num_microbatches * s.dp);
}

// A suggestion that is itself refused would be worse than none.
RC_GTEST_PROP(SizesProperty, EverySuggestionIsAccepted, ()) {
  const auto world = *Number(1, 600);
  const v1::Parallel p = *AnyParallel();
  const auto misfit = Fit(world, p, nullptr);
  if (!misfit) return;
  const Suggestions s = Suggest(world, p, misfit->kind);
  for (const uint32_t other : s.worlds) RC_ASSERT(!Fit(other, p, nullptr));
  for (const v1::Parallel& other : s.layouts) RC_ASSERT(!Fit(world, other, nullptr));
  for (const uint32_t value : s.global_batches) {
    v1::Parallel other = p;
    other.set_global_batch(value);
    RC_ASSERT(!Fit(world, other, nullptr));
  }
  for (const uint32_t value : s.num_microbatches) {
    v1::Parallel other = p;
    other.set_num_microbatches(value);
    RC_ASSERT(!Fit(world, other, nullptr));
  }
  for (const uint32_t value : s.micro_batches) {
    v1::Parallel other = p;
    other.set_micro_batch(value);
    RC_ASSERT(!Fit(world, other, nullptr));
  }
}

// Nothing nearer than the suggested slot counts would do.
RC_GTEST_PROP(SizesProperty, SuggestedSlotCountsAreTheNearest, ()) {
  const auto world = *Number(1, 600);
  v1::Parallel p = *AnyParallel();
  const auto misfit = Fit(world, p, nullptr);
  if (!misfit || misfit->kind != Misfit::Kind::kModelParallel) return;
  const std::vector<uint32_t> suggested = Suggest(world, p, misfit->kind).worlds;
  std::vector<uint32_t> nearest;
  for (uint32_t w = world; w-- > 1;) {
    if (Fit(w, p, nullptr)) continue;
    nearest.push_back(w);
    break;
  }
  const uint32_t size = p.tp() * p.pp() * p.cp();
  for (uint32_t w = world + 1; w <= kMaxWorld; ++w) {
    if (w % size != 0) continue;  // cheaper than a refusal's text
    if (Fit(w, p, nullptr)) continue;
    nearest.push_back(w);
    break;
  }
  RC_ASSERT(suggested == nearest);
}

RC_GTEST_PROP(SizesProperty, SuggestedPartsOfTheHostsAreAccepted, ()) {
  const auto slots = *rc::gen::nonEmpty(rc::gen::container<std::vector<uint32_t>>(Number(1, 9)));
  RC_PRE(slots.size() < 20U);
  std::string hostfile;
  for (size_t i = 0; i < slots.size(); ++i) {
    hostfile += "n" + std::to_string(i) + " slots=" + std::to_string(slots[i]) + "\n";
  }
  v1::JobSpec spec = Job(hostfile, {"x"});
  *spec.mutable_parallel() = *AnyParallel();
  const auto nodes = SelectNodes(spec);
  for (const std::string& part : UsableParts(*nodes, spec.parallel())) {
    v1::JobSpec smaller = spec;
    const uint32_t value = static_cast<uint32_t>(std::stoul(part.substr(part.find(' ') + 1)));
    if (part.starts_with("--nnodes ")) smaller.set_nnodes(value);
    if (part.starts_with("--nproc-per-node ")) smaller.set_nproc_per_node(value);
    const auto plan = MakePlan(smaller);
    RC_ASSERT(plan.ok());
    RC_ASSERT(part.find("(" + std::to_string(plan->world()) + " slots)") != std::string::npos);
  }
}

}  // namespace
}  // namespace muster::plan
