#include "controller/plan/forecast.h"

#include <algorithm>

namespace muster::plan {
namespace {

// Why this job's ranks can't be sized, or "".
std::string WhyNoMemory(const v1::JobSpec& spec, const ModelShape& model, const Sizes& sizes) {
  if (FlagReader(spec).Text("device") == "cpu") return "the ranks compute on CPUs";
  if (model.vocab == 0) return "the job's flags do not give --vocab-size";
  if (sizes.micro_batch == 0) return "the job has no batch sizes";
  return "";
}

}  // namespace

Sizes SizesOf(const v1::Plan& plan) {
  Sizes out;
  out.world = plan.world();
  out.tp = plan.tp();
  out.pp = plan.pp();
  out.cp = plan.cp();
  out.vp = plan.vp();
  out.dp = plan.dp();
  out.micro_batch = plan.micro_batch();
  out.num_microbatches = plan.num_microbatches();
  out.global_batch = plan.global_batch();
  return out;
}

uint32_t RanksPerHost(const v1::Plan& plan) {
  uint32_t out = plan.world();
  for (const v1::NodePlan& node : plan.nodes()) out = std::min(out, node.num_ranks());
  return out;
}

Forecast MakeForecast(const v1::JobSpec& spec, const v1::Plan& plan,
                      const ForecastOptions& options) {
  Forecast out;
  if (options.device_memory) {
    out.device = DeviceMemory{*options.device_memory, "--device-memory"};
  } else {
    out.device = MemoryOfHosts(plan);
  }
  const ModelReading reading = ReadModel(spec);
  const Sizes sizes = SizesOf(plan);
  if (!reading.shape) {
    out.why_no_model = reading.why_not;
    return out;
  }
  // Other programs than muster-train may split as they like.
  if (auto why = CheckModel(*reading.shape, sizes)) {
    out.why_no_model = *std::move(why);
    return out;
  }
  out.model = reading.shape;
  SplitLayers(*out.model, sizes.pp, sizes.vp, &out.split);
  out.why_no_memory = WhyNoMemory(spec, *out.model, sizes);
  if (!out.why_no_memory.empty()) return out;
  out.memory = AllStages(*out.model, sizes, out.split);
  out.performance = Predict(*out.model, sizes, out.split, RanksPerHost(plan), options.constants);
  return out;
}

}  // namespace muster::plan
