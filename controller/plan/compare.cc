#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "controller/plan/forecast.h"

namespace muster::plan {
namespace {

// The plan's sizes as a person would give them, with the global batch held.
v1::Parallel ParallelOf(const v1::Plan& plan) {
  v1::Parallel out;
  out.set_tp(plan.tp());
  out.set_pp(plan.pp());
  out.set_cp(plan.cp());
  out.set_vp(plan.vp());
  out.set_micro_batch(plan.micro_batch());
  out.set_global_batch(plan.global_batch());
  return out;
}

bool SameLayout(const v1::Parallel& a, const v1::Plan& plan) {
  return a.tp() == plan.tp() && a.pp() == plan.pp() && a.cp() == plan.cp() && a.vp() == plan.vp();
}

// Smaller is better.
auto Order(const LayoutRow& row) {
  const Sizes& s = row.sizes;
  const double speed = row.performance ? row.performance->tokens_per_second : 0;
  return std::tuple(row.too_large, -speed, row.bubble, s.tp * s.pp * s.cp, s.tp, s.pp, s.cp, s.vp);
}

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

std::string Flags(const v1::Parallel& p) {
  return fmt::format("--tp {} --pp {} --cp {}{} --global-batch {}", p.tp(), p.pp(), p.cp(),
                     p.vp() > 1 ? fmt::format(" --vp {}", p.vp()) : "", p.global_batch());
}

// A way to need less on the same layout.
struct Saving {
  std::string_view flags;
  void (*apply)(ModelShape& model);
};
constexpr std::array kSavings = {
    Saving{"--flag grad-reduce-in-bf16", [](ModelShape& m) { m.grad_bytes = 2; }},
    Saving{"--flag use-distributed-optimizer",
           [](ModelShape& m) { m.distributed_optimizer = true; }},
    Saving{"--flag use-precision-aware-optimizer --flag exp-avg-dtype=bf16 --flag "
           "exp-avg-sq-dtype=bf16",
           [](ModelShape& m) { m.exp_avg_bytes = m.exp_avg_sq_bytes = 2; }},
    Saving{"--flag recompute-granularity=full --flag recompute-method=uniform --flag "
           "recompute-num-layers=1",
           [](ModelShape& m) {
             m.recompute = Recompute{};
             m.recompute.full = true;
           }},
};

double NeedOf(const ModelShape& model, const Sizes& sizes, const LayerSplit& split) {
  return LargestStage(AllStages(model, sizes, split));
}

// The fewest savings that fit, one or two of them; nothing if even two are not enough.
std::string FlagAdvice(const Forecast& forecast, const Sizes& sizes) {
  const auto text = [](std::string_view flags, double bytes) {
    return fmt::format("{}  ({:.1f} GiB)", flags, bytes / kGiB);
  };
  const double before = NeedOf(*forecast.model, sizes, forecast.split);
  for (const Saving& saving : kSavings) {
    ModelShape model = *forecast.model;
    saving.apply(model);
    const double need = NeedOf(model, sizes, forecast.split);
    if (need <= forecast.device->bytes) return text(saving.flags, need);
  }
  for (size_t i = 0; i < kSavings.size(); ++i) {
    for (size_t j = i + 1; j < kSavings.size(); ++j) {
      ModelShape model = *forecast.model;
      kSavings[i].apply(model);
      const double first = NeedOf(model, sizes, forecast.split);
      kSavings[j].apply(model);
      const double need = NeedOf(model, sizes, forecast.split);
      if (need > forecast.device->bytes || first >= before || need >= first) continue;
      return text(fmt::format("{} {}", kSavings[i].flags, kSavings[j].flags), need);
    }
  }
  return "";
}

}  // namespace

std::vector<LayoutRow> CompareLayouts(const v1::JobSpec& spec, const v1::Plan& plan,
                                      const ForecastOptions& options) {
  const Forecast own = MakeForecast(spec, plan, options);
  const ModelShape* model = own.model ? &*own.model : nullptr;
  const uint32_t ranks_per_host = RanksPerHost(plan);
  std::vector<LayoutRow> out;
  for (v1::Parallel& parallel : AllLayouts(plan.world(), ParallelOf(plan), model,
                                           model == nullptr ? plan.vp() : model->layers)) {
    LayoutRow row;
    Fit(plan.world(), parallel, &row.sizes, model);
    row.current = SameLayout(parallel, plan);
    row.bubble = row.sizes.num_microbatches > 0 ? BubbleFraction(row.sizes) : 0;
    if (!own.memory.empty()) {
      LayerSplit split;
      SplitLayers(*model, row.sizes.pp, row.sizes.vp, &split);
      row.memory = LargestStage(AllStages(*model, row.sizes, split));
      row.too_large = own.device && *row.memory > own.device->bytes;
      row.performance = Predict(*model, row.sizes, split, ranks_per_host, options.constants);
    }
    row.parallel = std::move(parallel);
    out.push_back(std::move(row));
  }
  std::sort(out.begin(), out.end(),
            [](const LayoutRow& a, const LayoutRow& b) { return Order(a) < Order(b); });
  return out;
}

std::vector<std::string> MemoryAdvice(const v1::JobSpec& spec, const v1::Plan& plan,
                                      const ForecastOptions& options) {
  constexpr size_t kMost = 3;
  std::vector<std::string> out;
  for (const LayoutRow& row : CompareLayouts(spec, plan, options)) {
    if (row.too_large || !row.memory || out.size() == kMost) break;
    out.push_back(fmt::format("{}  ({:.1f} GiB, about {:.0f} tokens/s a GPU)", Flags(row.parallel),
                              *row.memory / kGiB, row.performance->tokens_per_second_per_rank));
  }
  const Forecast own = MakeForecast(spec, plan, options);
  if (!own.memory.empty() && own.device) {
    if (std::string flags = FlagAdvice(own, SizesOf(plan)); !flags.empty()) {
      out.push_back(std::move(flags));
    }
  }
  return out;
}

}  // namespace muster::plan
