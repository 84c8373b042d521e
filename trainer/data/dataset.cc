#include "trainer/data/dataset.h"

#include <array>
#include <vector>

#include "trainer/data/data_error.h"
#include "trainer/data/index_budget.h"
#include "trainer/data/parallel_for.h"
#include "trainer/data/split_plan.h"

namespace muster::data {
namespace {

constexpr char kMockSplit[] = "1,1,1";

using Samples = std::array<std::optional<int64_t>, 3>;

void CheckRules(const DataConfig& config) {
  if (config.seq_length < 1) throw DataError("--seq-length must be at least 1");
  const std::pair<const char*, bool> rules[] = {
      {"--eod-mask-loss", config.eod_mask_loss},
      {"--reset-position-ids", config.reset_position_ids},
      {"--reset-attention-mask", config.reset_attention_mask}};
  for (const auto& [flag, wanted] : rules) {
    if (wanted && config.eod < 0) {
      throw DataError(std::string(flag) + " needs an end-of-document token");
    }
  }
}

std::vector<SplitPlan> PlanSplits(const DataConfig& config) {
  const Samples samples = {config.train_samples, config.valid_samples, config.test_samples};
  const DataPaths paths = config.mock_data ? DataPaths{} : ReadDataPaths(config.paths);
  PartPlanner planner(config);
  std::vector<SplitPlan> plans;
  for (const Split split : kSplits) {
    const auto i = static_cast<size_t>(split);
    if (samples[i] == 0) continue;
    if (config.mock_data) {
      plans.emplace_back(config, BlendList{{""}, std::nullopt}, kMockSplit, split, samples[i],
                         planner);
    } else if (paths.shared) {
      plans.emplace_back(config, *paths.shared, config.split, split, samples[i], planner);
    } else if (paths.per_split[i]) {
      plans.emplace_back(config, *paths.per_split[i], std::nullopt, split, samples[i], planner);
    }
    if (!plans.empty() && !plans.back().exists()) plans.pop_back();
  }
  return plans;
}

void CheckCost(const DataConfig& config, const std::vector<SplitPlan>& plans) {
  IndexCost total;
  for (const SplitPlan& plan : plans) {
    const IndexCost cost = plan.Cost();
    total.documents += cost.documents;
    total.samples += cost.samples;
    total.blend_draws += cost.blend_draws;
    total.blend_choices += cost.blend_choices;
    total.bytes += cost.bytes;
  }
  if (total.bytes == 0) return;
  config.report.note(CostText(total, config.index_memory));
  CheckBudget(total, config.index_memory);
}

// Parts at the same time, and threads for each.
void BuildParts(std::vector<SplitPlan>& plans) {
  std::vector<std::pair<SplitPlan*, size_t>> parts;
  for (SplitPlan& plan : plans) {
    for (size_t i = 0; i < plan.num_parts(); ++i) parts.emplace_back(&plan, i);
  }
  const int threads = HardwareThreads();
  const int at_once = std::min(threads, static_cast<int>(parts.size()));
  if (parts.empty()) return;
  ParallelFor(static_cast<int64_t>(parts.size()), at_once, [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto& [plan, part] = parts[static_cast<size_t>(i)];
      plan->BuildPart(part, std::max(2, threads / at_once));
    }
  });
}

}  // namespace

Datasets BuildDatasets(const DataConfig& config) {
  CheckRules(config);
  std::vector<SplitPlan> plans = PlanSplits(config);
  CheckCost(config, plans);
  BuildParts(plans);
  Datasets built;
  for (SplitPlan& plan : plans) {
    const std::array<std::unique_ptr<SampleSource>*, 3> to = {&built.train, &built.valid,
                                                              &built.test};
    *to[static_cast<size_t>(plan.split())] = plan.Finish();
  }
  return built;
}

}  // namespace muster::data
