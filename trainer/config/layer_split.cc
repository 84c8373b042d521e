#include "trainer/config/layer_split.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "trainer/config/error.h"

namespace muster::config {
namespace {

template <class... Args>
void Require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) throw ConfigError(fmt::format(format, std::forward<Args>(args)...));
}

constexpr char kStages[] = "--pipeline-model-parallel-size";

// Layers of each stage, what counts as a layer included.
std::vector<int64_t> EqualStages(const TrainConfig& c) {
  const int64_t stages = c.pipeline_model_parallel_size;
  const int64_t extra = (c.account_for_embedding_in_pipeline_split ? 1 : 0) +
                        (c.account_for_loss_in_pipeline_split ? 1 : 0);
  const int64_t total = c.model.num_layers + extra;
  Require(total % stages == 0,
          "--num-layers {}{}: {} do not split evenly over {} {}; give the first or last stage "
          "fewer with --decoder-first-pipeline-num-layers or --decoder-last-pipeline-num-layers",
          c.model.num_layers, extra > 0 ? fmt::format(" and {} for embedding and loss", extra) : "",
          total, kStages, stages);
  return std::vector<int64_t>(static_cast<size_t>(stages), total / stages);
}

std::vector<int64_t> UnevenStages(const TrainConfig& c) {
  const int64_t stages = c.pipeline_model_parallel_size, layers = c.model.num_layers;
  const auto first = c.decoder_first_pipeline_num_layers;
  const auto last = c.decoder_last_pipeline_num_layers;
  std::string text = fmt::format("--num-layers {}", layers);
  if (first) text += fmt::format(" with --decoder-first-pipeline-num-layers {}", *first);
  if (last) {
    text +=
        fmt::format("{} --decoder-last-pipeline-num-layers {}", first ? " and" : " with", *last);
  }
  Require(stages > 1, "{}: needs {} above 1", text, kStages);
  const int64_t others = stages - (first ? 1 : 0) - (last ? 1 : 0);
  const int64_t rest = layers - first.value_or(0) - last.value_or(0);
  Require(first.value_or(0) <= layers && rest >= 0 && (others > 0 || rest == 0),
          "{}: do not make up {} layers over {} {}", text, layers, kStages, stages);
  Require(others == 0 || rest % others == 0,
          "{}: leaves {} layers, which do not split evenly over the other {} stages", text, rest,
          others);
  std::vector<int64_t> result(static_cast<size_t>(stages), others > 0 ? rest / others : 0);
  if (first) result.front() = *first;
  if (last) result.back() = *last;
  return result;
}

}  // namespace

int64_t ChunksPerStage(const TrainConfig& c) {
  if (c.num_virtual_stages_per_pipeline_rank) return *c.num_virtual_stages_per_pipeline_rank;
  if (!c.num_layers_per_virtual_pipeline_stage) return 1;
  const int64_t layers = *c.num_layers_per_virtual_pipeline_stage;
  const int64_t stage = EqualStages(c).front();
  Require(stage % layers == 0,
          "--num-layers-per-virtual-pipeline-stage {}: the {} layers of a stage are no multiple of "
          "it",
          layers, stage);
  return stage / layers;
}

LayerSplit SplitLayers(const TrainConfig& c) {
  const bool uneven = c.decoder_first_pipeline_num_layers || c.decoder_last_pipeline_num_layers;
  Require(!uneven ||
              !(c.account_for_embedding_in_pipeline_split || c.account_for_loss_in_pipeline_split),
          "--decoder-first/last-pipeline-num-layers exclude "
          "--account-for-embedding/loss-in-pipeline-split");
  Require(!uneven || !c.num_layers_per_virtual_pipeline_stage,
          "--decoder-first/last-pipeline-num-layers exclude "
          "--num-layers-per-virtual-pipeline-stage; use --num-virtual-stages-per-pipeline-rank");
  const int64_t chunks = ChunksPerStage(c);
  LayerSplit split;
  for (const int64_t layers : uneven ? UnevenStages(c) : EqualStages(c)) {
    Require(layers % chunks == 0 && (layers > 0 || chunks == 1),
            "{} layers of a pipeline stage do not split evenly over its {} virtual stages", layers,
            chunks);
    split.emplace_back(static_cast<size_t>(chunks), layers / chunks);
  }
  // What counts as a layer takes the place of one.
  const std::pair<bool, int64_t*> ends[] = {
      {c.account_for_embedding_in_pipeline_split, &split.front().front()},
      {c.account_for_loss_in_pipeline_split, &split.back().back()}};
  for (const auto& [counts, layers] : ends) {
    if (!counts) continue;
    Require(*layers > 0, "no layer is left beside embedding and loss in a stage of {} {}", kStages,
            c.pipeline_model_parallel_size);
    --*layers;
  }
  return split;
}

}  // namespace muster::config
