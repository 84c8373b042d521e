#include "trainer/config/resolve.h"

#include <fmt/format.h>

#include "trainer/config/error.h"
#include "trainer/config/validate.h"

namespace muster::config {
namespace {

template <class T>
void Derive(CommandLine& line, const char* flag, T& field, T value) {
  field = value;
  line.origins[flag] = "derived";
}

void DeriveModel(CommandLine& line) {
  TrainConfig& c = line.config;
  ModelConfig& m = c.model;
  if (m.kv_channels == 0) {
    CheckDivides("hidden-size", m.hidden_size, "num-attention-heads", m.num_attention_heads);
    Derive(line, "kv-channels", m.kv_channels, m.hidden_size / m.num_attention_heads);
  }
  if (m.ffn_hidden_size == 0) {
    // Megatron's size for SwiGLU: as many weights as a plain MLP of 4 * hidden.
    Derive(line, "ffn-hidden-size", m.ffn_hidden_size, m.hidden_size * 4 * 2 / 3 / 64 * 64);
  }
  // As in Megatron: the number of groups counts only with --group-query-attention, and is then 1
  // unless it is given.
  if (!c.group_query_attention) {
    Derive(line, "num-query-groups", m.num_query_groups, m.num_attention_heads);
  } else if (m.num_query_groups == 0) {
    Derive(line, "num-query-groups", m.num_query_groups, int64_t{1});
  }
  const int64_t multiple = c.make_vocab_size_divisible_by * c.tensor_model_parallel_size;
  m.padded_vocab_size = (c.vocab_size + multiple - 1) / multiple * multiple;
  m.seed = static_cast<uint64_t>(c.seed);
  // As in Megatron: there is nothing to split the tokens over.
  if (c.sequence_parallel && c.tensor_model_parallel_size == 1) {
    Derive(line, "sequence-parallel", c.sequence_parallel, false);
  }
}

void DerivePrecision(CommandLine& line) {
  TrainConfig& c = line.config;
  if (c.params_dtype.empty()) {
    Derive(line, "params-dtype", c.params_dtype, std::string(c.bf16 ? "bf16" : "fp32"));
  }
  ModelConfig& m = c.model;
  m.params_dtype = c.params_dtype == "bf16"   ? DType::kBf16
                   : c.params_dtype == "fp64" ? DType::kFp64
                                              : DType::kFp32;
  if (c.exp_avg_dtype.empty()) {
    Derive(line, "exp-avg-dtype", c.exp_avg_dtype,
           std::string(c.device == "cuda" ? "bf16" : "fp32"));
  }
  if (c.exp_avg_sq_dtype.empty()) {
    Derive(line, "exp-avg-sq-dtype", c.exp_avg_sq_dtype, c.exp_avg_dtype);
  }
  if (c.fp8_format.empty()) return;
  m.fp8.recipe = c.fp8_recipe == "delayed" ? Fp8Recipe::kDelayed : Fp8Recipe::kTensorwise;
  m.fp8.format = c.fp8_format == "hybrid" ? Fp8Format::kHybrid : Fp8Format::kE4m3;
  m.fp8.amax_algo = c.fp8_amax_compute_algo == "max" ? AmaxAlgo::kMax : AmaxAlgo::kMostRecent;
  m.fp8.margin = static_cast<int>(c.fp8_margin);
  m.fp8.round_outputs_to_bf16 = m.params_dtype == DType::kBf16;
}

RunSizes DeriveSizes(int64_t world_size, CommandLine& line) {
  TrainConfig& c = line.config;
  RunSizes sizes;
  const int64_t data_parallel =
      world_size /
      (c.tensor_model_parallel_size * c.pipeline_model_parallel_size * c.context_parallel_size);
  sizes.data_parallel_size = data_parallel;
  if (c.global_batch_size == 0) {
    Derive(line, "global-batch-size", c.global_batch_size, c.micro_batch_size * data_parallel);
  }
  CheckGlobalBatch(c.global_batch_size, c.micro_batch_size, data_parallel);
  sizes.num_microbatches = c.global_batch_size / (c.micro_batch_size * data_parallel);
  sizes.train_iters =
      c.train_samples ? *c.train_samples / c.global_batch_size : c.train_iters.value_or(0);
  CheckLength(c, sizes.train_iters);
  sizes.train_samples = sizes.train_iters * c.global_batch_size;

  if (c.train_samples) {
    sizes.lr_decay_samples = c.lr_decay_samples.value_or(*c.train_samples);
    sizes.lr_warmup_samples = static_cast<double>(c.lr_warmup_samples);
  } else {
    sizes.lr_decay_samples = c.lr_decay_iters.value_or(sizes.train_iters) * c.global_batch_size;
    sizes.lr_warmup_samples = static_cast<double>(c.lr_warmup_iters * c.global_batch_size);
  }
  if (c.lr_warmup_fraction) {
    sizes.lr_warmup_samples = *c.lr_warmup_fraction * static_cast<double>(sizes.lr_decay_samples);
  }
  return sizes;
}

// The factors that no flag gives come from the file too, whoever turned scaling on.
void AdoptRopeScaling(const RopeScaling& from, CommandLine& line) {
  RopeScaling& ours = line.config.model.rope_scaling;
  const RopeScaling given = ours;
  if (from.enabled) ours = from;
  if (line.Given("rope-scaling-factor")) ours.factor = given.factor;
  if (!line.Given("use-rope-scaling")) line.origins["use-rope-scaling"] = "config.json";
}

}  // namespace

void AdoptModel(const ModelConfig& from, CommandLine& line) {
  TrainConfig& c = line.config;
  const auto adopt = [&line](const char* flag, auto& field, const auto& value) {
    if (line.Given(flag)) return;
    field = value;
    line.origins[flag] = "config.json";
  };
  adopt("num-layers", c.model.num_layers, from.num_layers);
  adopt("hidden-size", c.model.hidden_size, from.hidden_size);
  adopt("ffn-hidden-size", c.model.ffn_hidden_size, from.ffn_hidden_size);
  adopt("num-attention-heads", c.model.num_attention_heads, from.num_attention_heads);
  adopt("group-query-attention", c.group_query_attention, true);
  adopt("num-query-groups", c.model.num_query_groups, from.num_query_groups);
  adopt("kv-channels", c.model.kv_channels, from.kv_channels);
  adopt("max-position-embeddings", c.model.max_position_embeddings, from.max_position_embeddings);
  adopt("rotary-base", c.model.rotary_base, from.rotary_base);
  AdoptRopeScaling(from.rope_scaling, line);
  adopt("norm-epsilon", c.model.norm_epsilon, from.norm_epsilon);
  adopt("untie-embeddings-and-output-weights", c.model.untie_embeddings_and_output_weights,
        from.untie_embeddings_and_output_weights);
  adopt("vocab-size", c.vocab_size, from.padded_vocab_size);
  // Padding rows would take part in the softmax: without them the loss is Hugging Face's.
  adopt("make-vocab-size-divisible-by", c.make_vocab_size_divisible_by, int64_t{1});
}

RunSizes Resolve(int64_t world_size, CommandLine& line) {
  CheckGiven(line);
  CheckParallel(world_size, line.config);
  DeriveModel(line);
  DerivePrecision(line);
  RunSizes sizes = DeriveSizes(world_size, line);
  CheckModel(line.config);
  CheckLayout(line.config, sizes);
  CheckPrecision(line.config);
  CheckSchedule(line, sizes);
  CheckFiles(line.config);
  return sizes;
}

}  // namespace muster::config
