#include <algorithm>
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

}  // namespace muster::plan
