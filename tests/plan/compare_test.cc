#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "controller/plan/forecast.h"
#include "controller/plan/groups.h"
#include "model_testing.h"

// What `muster plan` promises of any plan: each slot once, groups that partition the ranks, sizes
// that multiply out; and that every layout that it names is one that it takes.

namespace muster::plan {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

rc::Gen<uint32_t> Number(uint32_t low, uint32_t high) {
  return rc::gen::resize(rc::kNominalSize, rc::gen::inRange<uint32_t>(low, high));
}

// A trainer job whose sizes fit its hosts, unless one of them was changed afterwards.
v1::JobSpec AnyJob(bool spoilt) {
  const auto size = [] { return *rc::gen::element<uint32_t>(1, 1, 2, 4); };
  v1::Parallel parallel = Sized(size(), size(), *rc::gen::element<uint32_t>(1, 1, 2));
  const uint32_t dp = *Number(1, 5);
  const uint32_t microbatches = parallel.pp() * *Number(1, 9);
  parallel.set_micro_batch(*Number(1, 3));
  parallel.set_vp(parallel.pp() > 1 ? *rc::gen::element<uint32_t>(1, 1, 2) : 1);
  if (*rc::gen::arbitrary<bool>()) {
    parallel.set_global_batch(parallel.micro_batch() * microbatches * dp);
  } else {
    parallel.set_num_microbatches(microbatches);
  }
  std::string hostfile;
  uint32_t left = parallel.tp() * parallel.pp() * parallel.cp() * dp;
  for (uint32_t h = 0; left > 0; ++h) {
    const uint32_t here = std::min(left, *Number(1, 9));
    hostfile += "n" + std::to_string(h) + " slots=" + std::to_string(here) +
                (*Number(0, 4) == 0 ? " type=H100" : "") + "\n";
    left -= here;
  }
  std::vector<std::pair<std::string, std::string>> more;
  if (*rc::gen::arbitrary<bool>()) more.emplace_back("sequence-parallel", "");
  uint32_t layers = *rc::gen::element<uint32_t>(16, 32, 48);
  if (spoilt) {
    switch (*Number(0, 6)) {
      case 0:
        hostfile += "more slots=" + std::to_string(*Number(1, 9)) + "\n";
        break;
      case 1:
        parallel.set_tp(*Number(1, 20));
        break;
      case 2:
        parallel.set_pp(*Number(1, 9));
        break;
      case 3:
        parallel.set_micro_batch(*Number(1, 50));
        break;
      case 4:
        layers = *Number(1, 64);
        break;
      default:
        more.emplace_back("decoder-first-pipeline-num-layers", std::to_string(*Number(1, 9)));
    }
  }
  v1::JobSpec spec = Trainer8b(hostfile, parallel, more);
  spec.mutable_flags(0)->set_values(0, std::to_string(layers));  // num-layers
  return spec;
}

void CheckPlan(const v1::Plan& plan) {
  // Each slot once, in order.
  std::set<std::pair<uint32_t, uint32_t>> slots;
  uint32_t total = 0;
  for (const v1::NodePlan& node : plan.nodes()) total += node.num_ranks();
  RC_ASSERT(plan.world() == total);
  RC_ASSERT(plan.ranks_size() == static_cast<int>(total));
  for (const v1::RankPlan& rank : plan.ranks()) {
    RC_ASSERT(rank.local_rank() < plan.nodes(static_cast<int>(rank.node())).num_ranks());
    RC_ASSERT(slots.emplace(rank.node(), rank.local_rank()).second);
  }
  RC_ASSERT(plan.tp() * plan.pp() * plan.cp() * plan.dp() == total);
  RC_ASSERT(plan.global_batch() == plan.micro_batch() * plan.num_microbatches() * plan.dp());
  for (const GroupKind kind : {GroupKind::kTp, GroupKind::kCp, GroupKind::kDp, GroupKind::kDpCp,
                               GroupKind::kPp, GroupKind::kTpDpCp}) {
    std::set<uint32_t> seen;
    for (const auto& group : Groups(plan, kind)) {
      for (const uint32_t rank : group) RC_ASSERT(seen.insert(rank).second);
    }
    RC_ASSERT(seen.size() == total);
  }
}

RC_GTEST_PROP(PlanProperty, AcceptedPlansAreSound, ()) {
  const bool spoilt = *Number(0, 4) == 0;
  const auto plan = MakePlan(AnyJob(spoilt));
  RC_ASSERT(plan.ok() || spoilt);
  if (plan.ok()) CheckPlan(*plan);
}

// The suggestions of a refusal, each put to the planner.
RC_GTEST_PROP(PlanProperty, EverySuggestionIsAccepted, ()) {
  const v1::JobSpec spec = AnyJob(true);
  const auto plan = MakePlan(spec);
  if (plan.ok()) return;
  const ModelReading reading = ReadModel(spec);
  uint32_t world = 0;
  for (const v1::Host& host : spec.inventory().hosts()) world += host.slots();
  const auto misfit = Fit(world, WithDefaults(spec.parallel()), nullptr, &*reading.shape);
  RC_ASSERT(misfit.has_value());
  const Suggestions s = Suggest(world, spec.parallel(), misfit->kind, &*reading.shape);
  const auto accepted = [&](v1::Parallel parallel) {
    v1::JobSpec other = spec;
    *other.mutable_parallel() = std::move(parallel);
    return MakePlan(other).ok();
  };
  for (const v1::Parallel& layout : s.layouts) RC_ASSERT(accepted(layout));
  for (const uint32_t value : s.global_batches) {
    v1::Parallel other = spec.parallel();
    other.set_global_batch(value);
    RC_ASSERT(accepted(other));
  }
  for (const uint32_t value : s.num_microbatches) {
    v1::Parallel other = spec.parallel();
    other.set_num_microbatches(value);
    RC_ASSERT(accepted(other));
  }
  for (const uint32_t value : s.micro_batches) {
    v1::Parallel other = spec.parallel();
    other.set_micro_batch(value);
    RC_ASSERT(accepted(other));
  }
  for (const uint32_t slots : s.worlds) {
    v1::JobSpec other = spec;
    *other.mutable_inventory() = Hosts("a slots=1\n");
    other.set_nproc_per_node(0);
    other.mutable_inventory()->mutable_hosts(0)->set_slots(slots);
    RC_ASSERT(MakePlan(other).ok());
  }
}

// Sizes as they are printed, typed over those that were given: what is not printed stays.
v1::Parallel Typed(v1::Parallel given, const std::string& text) {
  std::istringstream words(text);
  std::string name;
  while (words >> name) {
    if (name == "with") {  // "with a global batch of 12"
      for (int skipped = 0; skipped < 4; ++skipped) words >> name;
      name = "--global-batch";
    }
    if (name == "x" || name.starts_with("(")) continue;
    uint32_t value = 0;
    RC_ASSERT(static_cast<bool>(words >> value));
    if (name == "--tp" || name == "TP") given.set_tp(value);
    if (name == "--pp" || name == "PP") given.set_pp(value);
    if (name == "--cp" || name == "CP") given.set_cp(value);
    if (name == "--vp" || name == "VP") given.set_vp(value);
    if (name == "--global-batch") {
      given.set_global_batch(value);
      given.clear_num_microbatches();
    }
  }
  return given;
}

bool Accepts(v1::JobSpec spec, const std::string& text) {
  *spec.mutable_parallel() = Typed(spec.parallel(), text);
  return MakePlan(spec).ok();
}

// The sizes that the text of a refusal names.
std::vector<std::string> NamedLayouts(const std::string& text) {
  std::vector<std::string> out;
  const std::string mark = "Nearest sizes for ";
  const size_t start = text.find(mark);
  if (start == std::string::npos) return out;
  std::string list = text.substr(text.find(": ", start) + 2);
  list = list.substr(0, list.find('.'));
  for (size_t end = list.find(" or "); end != std::string::npos; end = list.find(" or ")) {
    out.push_back(list.substr(0, end));
    list = list.substr(end + 4);
  }
  out.push_back(list);
  return out;
}

// The words themselves: a VP that is left out would stay what it was.
RC_GTEST_PROP(PlanProperty, EveryPrintedLayoutIsAcceptedWhenTyped, ()) {
  const v1::JobSpec spec = AnyJob(*rc::gen::arbitrary<bool>());
  const auto plan = MakePlan(spec);
  if (!plan.ok()) {
    const std::string text(plan.status().message());
    for (const std::string& layout : NamedLayouts(text)) RC_ASSERT(Accepts(spec, layout));
    return;
  }
  ForecastOptions options;
  options.device_memory = MakeForecast(spec, *plan, {}).Needed() * *Number(5, 10) / 10;
  for (const Advice& advice : LayoutAdvice(spec, *plan, options)) {
    RC_ASSERT(Accepts(spec, advice.text));
  }
}

TEST(Suggestions, NameTheVirtualStagesThatHaveToGo) {
  v1::JobSpec spec = Trainer8b("a slots=8\nb slots=8\n", Sized(1, 2, 1, 1, 1024, 0, 2));
  spec.mutable_parallel()->set_tp(3);
  const auto refused = MakePlan(spec);
  const std::vector<std::string> named = NamedLayouts(std::string(refused.status().message()));
  EXPECT_THAT(named, testing::Contains(HasSubstr("VP 1")));
  for (const std::string& layout : named) EXPECT_TRUE(Accepts(spec, layout)) << layout;
  spec.mutable_parallel()->set_tp(1);
  ForecastOptions options;
  options.device_memory = 53 * kGiB;
  const auto advice = LayoutAdvice(spec, *MakePlan(spec), options);
  ASSERT_FALSE(advice.empty());
  for (const Advice& one : advice) EXPECT_TRUE(Accepts(spec, one.text)) << one.text;
}

RC_GTEST_PROP(PlanProperty, EveryComparedLayoutIsAccepted, ()) {
  const v1::JobSpec spec = AnyJob(false);
  const auto plan = MakePlan(spec);
  RC_ASSERT(plan.ok());
  size_t current = 0;
  for (const LayoutRow& row : CompareLayouts(spec, *plan, {})) {
    v1::JobSpec other = spec;
    *other.mutable_parallel() = row.parallel;
    const auto again = MakePlan(other);
    RC_ASSERT(again.ok());
    RC_ASSERT(again->global_batch() == plan->global_batch());
    current += row.current ? 1 : 0;
    const Forecast forecast = MakeForecast(other, *again, {});
    RC_ASSERT(row.memory.has_value());
    RC_ASSERT(forecast.Needed() == *row.memory);
    RC_ASSERT(forecast.TooLarge() == row.too_large);
    RC_ASSERT(forecast.performance->tokens_per_second == row.performance->tokens_per_second);
  }
  RC_ASSERT(current == 1U);
}

// What is said to fit does fit, when it is done.
RC_GTEST_PROP(PlanProperty, AdviceFits, ()) {
  const v1::JobSpec spec = AnyJob(false);
  const auto plan = MakePlan(spec);
  RC_ASSERT(plan.ok());
  ForecastOptions options;
  options.device_memory = MakeForecast(spec, *plan, {}).Needed() * *Number(5, 10) / 10;
  for (const Advice& advice : FlagAdvice(spec, *plan, options)) {
    v1::JobSpec other = spec;
    for (const v1::Flag& flag : advice.flags) *other.add_flags() = flag;
    const Forecast forecast = MakeForecast(other, *MakePlan(other), options);
    RC_ASSERT(!forecast.TooLarge());
    RC_ASSERT(forecast.Needed() == advice.bytes);
  }
  for (const Advice& advice : LayoutAdvice(spec, *plan, options)) {
    RC_ASSERT(advice.bytes <= *options.device_memory);
  }
}

TEST(Compare, FitsFirstThenSpeed) {
  const v1::JobSpec spec = Trainer8b("a slots=8 type=H100\nb slots=8\n", Sized(1, 2, 1, 1, 1024));
  const auto plan = MakePlan(spec);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ForecastOptions options;
  options.device_memory = 60 * kGiB;
  const std::vector<LayoutRow> rows = CompareLayouts(spec, *plan, options);
  ASSERT_GT(rows.size(), 50U);
  for (size_t i = 1; i < rows.size(); ++i) {
    EXPECT_LE(rows[i - 1].too_large, rows[i].too_large);
    if (rows[i - 1].too_large == rows[i].too_large) {
      EXPECT_GE(rows[i - 1].performance->tokens_per_second, rows[i].performance->tokens_per_second);
    }
  }
  EXPECT_TRUE(rows.back().too_large);
}

TEST(Compare, WithoutAModelOnlyBubbles) {
  v1::JobSpec spec = Job("a slots=8\n", {"x"});
  *spec.mutable_parallel() = Sized(1, 2, 1, 1, 8);
  const auto plan = MakePlan(spec);
  for (const LayoutRow& row : CompareLayouts(spec, *plan, {})) {
    EXPECT_FALSE(row.memory.has_value());
    EXPECT_EQ(row.bubble, BubbleFraction(row.sizes));
  }
}

TEST(Forecast, SaysWhyNot) {
  const v1::JobSpec plain = Job("a slots=1\n", {"x"});
  EXPECT_THAT(MakeForecast(plain, *MakePlan(plain), {}).why_no_model, HasSubstr("--num-layers"));
  v1::JobSpec cpu = Trainer8b("a slots=1\n", Sized(1, 1, 1, 1, 1), {{"device", "cpu"}});
  const Forecast forecast = MakeForecast(cpu, *MakePlan(cpu), {});
  EXPECT_THAT(forecast.why_no_memory, HasSubstr("CPU"));
  EXPECT_THAT(forecast.memory, IsEmpty());
  EXPECT_FALSE(forecast.performance.has_value());
}

}  // namespace
}  // namespace muster::plan
