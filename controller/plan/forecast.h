#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/plan/constants.h"
#include "controller/plan/device_memory.h"
#include "controller/plan/memory.h"
#include "controller/plan/performance.h"
#include "muster/v1/job.pb.h"

// What a plan's ranks will need and how fast they may be, as far as the job's flags tell. Pure.

namespace muster::plan {

// What the command line adds to a plan.
struct ForecastOptions {
  std::optional<double> device_memory;  // bytes
  Constants constants = DefaultConstants();
};

struct Forecast {
  std::optional<ModelShape> model;
  std::string why_no_model;
  LayerSplit split;                 // with a model
  std::vector<MemoryParts> memory;  // of each stage; empty = not estimated
  std::string why_no_memory;
  std::optional<DeviceMemory> device;
  std::optional<Performance> performance;  // whenever memory is

  double Needed() const { return LargestStage(memory); }
  // True only if both are known and the need is larger.
  bool TooLarge() const { return device && !memory.empty() && Needed() > device->bytes; }
};

Forecast MakeForecast(const v1::JobSpec& spec, const v1::Plan& plan,
                      const ForecastOptions& options);

// The sizes of a plan.
Sizes SizesOf(const v1::Plan& plan);

// The smallest number of ranks on a host.
uint32_t RanksPerHost(const v1::Plan& plan);

// A layout of the same job on the same hosts with the same global batch.
struct LayoutRow {
  v1::Parallel parallel;  // as for the command line: MakePlan accepts it
  Sizes sizes;
  bool current = false;  // the plan's own
  double bubble = 0;
  std::optional<double> memory;  // of the largest stage
  bool too_large = false;        // for the device, as far as both are known
  std::optional<Performance> performance;
};

// All layouts that work, what fits first, then by predicted speed; without a model by bubble and by
// model-parallel size.
std::vector<LayoutRow> CompareLayouts(const v1::JobSpec& spec, const v1::Plan& plan,
                                      const ForecastOptions& options);

// For a plan that is too large for its devices: what would fit.
struct Advice {
  std::string text;  // "--tp 2 --pp 1 --cp 1 --global-batch 1024", "--flag grad-reduce-in-bf16"
  double bytes = 0;  // needed then
  std::vector<v1::Flag> flags;  // flags to add to the job; empty for another layout
};
// Layouts of the same hosts, the fastest first, at most three.
std::vector<Advice> LayoutAdvice(const v1::JobSpec& spec, const v1::Plan& plan,
                                 const ForecastOptions& options);
// Flags that save enough on the same layout: one, or two together, those that cost least first.
// Whether the job's program knows them is for the caller to find out.
std::vector<Advice> FlagAdvice(const v1::JobSpec& spec, const v1::Plan& plan,
                               const ForecastOptions& options);

}  // namespace muster::plan
