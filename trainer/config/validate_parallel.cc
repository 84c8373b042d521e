#include <fmt/format.h>

#include <string>
#include <utility>

#include "trainer/config/error.h"
#include "trainer/config/layer_split.h"
#include "trainer/config/validate.h"

namespace muster::config {
namespace {

template <class... Args>
void Require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) throw ConfigError(fmt::format(format, std::forward<Args>(args)...));
}

constexpr int64_t kMostRanks = 1 << 20;  // products of three sizes stay exact

void CheckTensor(const TrainConfig& c) {
  const int64_t tp = c.tensor_model_parallel_size;
  const ModelConfig& m = c.model;
  const std::pair<const char*, int64_t> split[] = {{"num-attention-heads", m.num_attention_heads},
                                                   {"num-query-groups", m.num_query_groups},
                                                   {"ffn-hidden-size", m.ffn_hidden_size}};
  for (const auto& [flag, size] : split) {
    CheckDivides(flag, size, "tensor-model-parallel-size", tp);
  }
  if (!c.sequence_parallel) return;
  const int64_t pieces = tp * c.context_parallel_size;
  Require(m.seq_length % pieces == 0,
          "--seq-length {}: --sequence-parallel splits it over {} ranks (tensor {} * context {}); "
          "nearest: {}",
          m.seq_length, pieces, tp, c.context_parallel_size,
          NearestMultiples(m.seq_length, pieces));
}

// The sizes that the hardware's FP8 products take, of one rank's part.
void CheckFp8Parts(const TrainConfig& c) {
  const int64_t tp = c.tensor_model_parallel_size;
  if (c.fp8_format.empty() || tp == 1) return;
  const ModelConfig& m = c.model;
  const std::pair<const char*, int64_t> parts[] = {
      {"ffn-hidden-size", m.ffn_hidden_size},
      {"kv-channels * num-attention-heads", m.kv_channels * m.num_attention_heads},
      {"kv-channels * (num-attention-heads + 2 * num-query-groups)",
       m.kv_channels * (m.num_attention_heads + 2 * m.num_query_groups)}};
  for (const auto& [what, size] : parts) {
    Require(size % (16 * tp) == 0,
            "--{} {}: FP8 needs a multiple of 16 on each of {} tensor-parallel ranks; nearest: {}",
            what, size, tp, NearestMultiples(size, 16 * tp));
  }
}

void CheckContext(const TrainConfig& c) {
  const int64_t cp = c.context_parallel_size, seq = c.model.seq_length;
  if (cp == 1) return;
  Require(seq % (2 * cp) == 0,
          "--seq-length {}: --context-parallel-size {} cuts it into {} chunks; nearest: {}", seq,
          cp, 2 * cp, NearestMultiples(seq, 2 * cp));
  const std::pair<const char*, bool> segments[] = {
      {"reset-attention-mask", c.reset_attention_mask},
      {"dataloader-inter-document-masking", c.inter_document_masking}};
  for (const auto& [flag, given] : segments) {
    Require(!given,
            "--{}: context parallelism attends over whole sequences; leave it out, or use "
            "--context-parallel-size 1",
            flag);
  }
  Require(c.fp8_format.empty() || c.micro_batch_size * seq % (8 * cp) == 0,
          "--micro-batch-size {} * --seq-length {}: FP8 needs a multiple of 8 on each of {} "
          "context-parallel ranks",
          c.micro_batch_size, seq, cp);
}

void CheckPipeline(const TrainConfig& c, const RunSizes& sizes) {
  SplitLayers(c);
  const int64_t chunks = ChunksPerStage(c), stages = c.pipeline_model_parallel_size;
  const auto& group_size = c.microbatch_group_size_per_virtual_pipeline_stage;
  Require(!group_size || chunks > 1,
          "--microbatch-group-size-per-virtual-pipeline-stage {}: needs virtual stages; give "
          "--num-virtual-stages-per-pipeline-rank",
          group_size.value_or(0));
  if (chunks == 1) return;
  Require(stages > 1, "{} virtual stages need --pipeline-model-parallel-size above 1", chunks);
  const int64_t group = group_size.value_or(stages), count = sizes.num_microbatches;
  Require(group >= stages && group <= count,
          "--microbatch-group-size-per-virtual-pipeline-stage {}: must be from {} (stages) to {} "
          "(micro-batches of an iteration)",
          group, stages, count);
  const int64_t last = count % group;
  Require(group_size || last == 0,
          "{} micro-batches of an iteration: virtual stages need a multiple of "
          "--pipeline-model-parallel-size {}; nearest: {}",
          count, stages, NearestMultiples(count, stages));
  Require(last == 0 || last >= stages,
          "{} micro-batches in groups of {} leave {} for the last group, fewer than the {} stages",
          count, group, last, stages);
}

}  // namespace

void CheckParallel(int64_t world_size, const TrainConfig& c) {
  const std::pair<const char*, int64_t> sizes[] = {
      {"tensor-model-parallel-size", c.tensor_model_parallel_size},
      {"pipeline-model-parallel-size", c.pipeline_model_parallel_size},
      {"context-parallel-size", c.context_parallel_size}};
  for (const auto& [flag, size] : sizes) {
    Require(size <= kMostRanks, "--{} {}: must be at most {}", flag, size, kMostRanks);
  }
  const int64_t model_parallel =
      c.tensor_model_parallel_size * c.pipeline_model_parallel_size * c.context_parallel_size;
  Require(world_size % model_parallel == 0,
          "world size {} is not divisible by tensor {} * pipeline {} * context {} = {} ranks; "
          "nearest: {}",
          world_size, c.tensor_model_parallel_size, c.pipeline_model_parallel_size,
          c.context_parallel_size, model_parallel, NearestMultiples(world_size, model_parallel));
  Require(
      c.device == "cpu" || model_parallel == 1,
      "--device cuda runs data parallel only in this version: tensor {}, pipeline {} and context "
      "{} must be 1",
      c.tensor_model_parallel_size, c.pipeline_model_parallel_size, c.context_parallel_size);
  Require(!c.num_layers_per_virtual_pipeline_stage || !c.num_virtual_stages_per_pipeline_rank,
          "--num-layers-per-virtual-pipeline-stage excludes "
          "--num-virtual-stages-per-pipeline-rank: give one of them");
  Require(!c.overlap_param_gather || c.use_distributed_optimizer,
          "--overlap-param-gather needs --use-distributed-optimizer");
  Require(!c.overlap_param_gather || c.overlap_grad_reduce,
          "--overlap-param-gather needs --overlap-grad-reduce");
}

void CheckLayout(const TrainConfig& c, const RunSizes& sizes) {
  CheckTensor(c);
  CheckFp8Parts(c);
  CheckContext(c);
  CheckPipeline(c, sizes);
}

}  // namespace muster::config
