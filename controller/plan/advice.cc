#include <fmt/format.h>

#include <array>
#include <span>
#include <string_view>

#include "controller/plan/forecast.h"

namespace muster::plan {
namespace {

// All that has to be typed after a command line that gives `given_vp`.
std::string LayoutFlags(const v1::Parallel& p, uint32_t given_vp) {
  return fmt::format("--tp {} --pp {} --cp {}{} --global-batch {}", p.tp(), p.pp(), p.cp(),
                     p.vp() > 1 || given_vp > 1 ? fmt::format(" --vp {}", p.vp()) : "",
                     p.global_batch());
}

// A way to need less on the same layout, in the words of --flag.
struct Saving {
  std::array<std::string_view, 3> flags;
  void (*apply)(ModelShape& model);
};
// Those that cost least first.
constexpr std::array kSavings = {
    Saving{{"use-distributed-optimizer"}, [](ModelShape& m) { m.distributed_optimizer = true; }},
    Saving{{"grad-reduce-in-bf16"}, [](ModelShape& m) { m.grad_bytes = 2; }},
    Saving{{"use-precision-aware-optimizer", "exp-avg-dtype=bf16", "exp-avg-sq-dtype=bf16"},
           [](ModelShape& m) { m.exp_avg_bytes = m.exp_avg_sq_bytes = 2; }},
    Saving{{"recompute-granularity=full", "recompute-method=uniform", "recompute-num-layers=1"},
           [](ModelShape& m) {
             m.recompute = Recompute{};
             m.recompute.full = true;
           }},
};

void AddFlags(const Saving& saving, Advice& out) {
  for (const std::string_view word : saving.flags) {
    if (word.empty()) continue;
    out.text += fmt::format("{}--flag {}", out.text.empty() ? "" : " ", word);
    v1::Flag& flag = out.flags.emplace_back();
    const size_t equal = word.find('=');
    flag.set_name(std::string(word.substr(0, equal)));
    if (equal != std::string_view::npos) flag.add_values(std::string(word.substr(equal + 1)));
  }
}

}  // namespace

std::vector<Advice> LayoutAdvice(const v1::JobSpec& spec, const v1::Plan& plan,
                                 const ForecastOptions& options) {
  constexpr size_t kMost = 3;
  std::vector<Advice> out;
  for (const LayoutRow& row : CompareLayouts(spec, plan, options)) {
    if (row.too_large || !row.memory || out.size() == kMost) break;
    out.push_back({LayoutFlags(row.parallel, plan.vp()), *row.memory, {}});
  }
  return out;
}

std::vector<Advice> FlagAdvice(const v1::JobSpec& spec, const v1::Plan& plan,
                               const ForecastOptions& options) {
  const Forecast own = MakeForecast(spec, plan, options);
  if (!own.TooLarge()) return {};
  const Sizes sizes = SizesOf(plan);
  const auto need = [&](const ModelShape& model) {
    return LargestStage(AllStages(model, sizes, own.split));
  };
  std::vector<Advice> one;
  std::vector<Advice> two;
  for (size_t i = 0; i < kSavings.size(); ++i) {
    ModelShape model = *own.model;
    kSavings[i].apply(model);
    const double first = need(model);
    if (first >= own.Needed()) continue;  // it is in use already
    if (first <= own.device->bytes) {
      one.push_back({"", first, {}});
      AddFlags(kSavings[i], one.back());
    }
    for (size_t j = i + 1; j < kSavings.size(); ++j) {
      ModelShape both = model;
      kSavings[j].apply(both);
      const double second = need(both);
      if (second >= first || second > own.device->bytes) continue;
      two.push_back({"", second, {}});
      AddFlags(kSavings[i], two.back());
      AddFlags(kSavings[j], two.back());
    }
  }
  return one.empty() ? two : one;
}

}  // namespace muster::plan
