#include "trainer/config/validate.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "trainer/config/bytes.h"
#include "trainer/config/error.h"

namespace muster::config {
namespace {

template <class... Args>
void Require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) throw ConfigError(fmt::format(format, std::forward<Args>(args)...));
}

// Samples of a whole run: far beyond any, and with every sum over them an int64.
constexpr int64_t kMostSamples = int64_t{1} << 60;

void RequireZero(const char* flag, double value) {
  Require(value == 0, "--{} {}: must be 0, as Llama is trained without dropout", flag, value);
}

}  // namespace

std::string NearestMultiples(int64_t value, int64_t step) {
  const int64_t below = value / step * step;
  if (below == 0) return fmt::format("{}", step);
  return fmt::format("{} or {}", below, below + step);
}

void CheckDivides(const char* name, int64_t value, const char* by, int64_t divisor) {
  Require(value % divisor == 0, "--{} {} is not a multiple of --{} {}; nearest: {}", name, value,
          by, divisor, NearestMultiples(value, divisor));
}

namespace {

// Megatron's rules for the ways to name data.
void CheckDataPaths(const CommandLine& line) {
  const TrainConfig& c = line.config;
  const bool lists =
      !c.train_data_path.empty() || !c.valid_data_path.empty() || !c.test_data_path.empty();
  const bool per_split = lists || !c.per_split_data_args_path.empty();
  const bool shared = !c.data_path.empty() || !c.data_args_path.empty();
  const char* const shared_flag = c.data_path.empty() ? "data-args-path" : "data-path";
  const char* const split_flags = "--train-data-path, --valid-data-path and --test-data-path";
  Require(c.mock_data || shared || per_split,
          "no data: give --data-path PREFIX (of PREFIX.bin and PREFIX.idx), --train-data-path or "
          "--mock-data");
  Require(!c.mock_data || !(shared || per_split),
          "--mock-data excludes {}: give synthetic data or real data",
          shared  ? fmt::format("--{}", shared_flag)
          : lists ? split_flags
                  : "--per-split-data-args-path");
  Require(c.data_path.empty() || c.data_args_path.empty(),
          "--data-path excludes --data-args-path: give one of them");
  Require(!lists || c.per_split_data_args_path.empty(),
          "--per-split-data-args-path excludes {}: give it or them", split_flags);
  Require(!per_split || !shared, "--{} excludes {}", shared_flag,
          lists ? split_flags : "--per-split-data-args-path");
  Require(!per_split || !line.Given("split"),
          "--split {}: cuts the data of --data-path; {} name each split's own, so leave it out",
          c.split, lists ? split_flags : "the lists of --per-split-data-args-path");
}

void CheckDataRules(const TrainConfig& c) {
  Require(!c.reset_attention_mask || !c.no_create_attention_mask,
          "--reset-attention-mask needs the attention mask, which "
          "--no-create-attention-mask-in-dataloader leaves out: drop the latter, or use "
          "--dataloader-inter-document-masking");
  Require(c.index_order == "megatron" || c.data_order == "shuffled",
          "--index-order {} says how --data-order shuffled shuffles; --data-order {} does not",
          c.index_order, c.data_order);
  Require(
      ParseBytes(c.index_memory).has_value(),
      "--index-memory '{}': wants bytes, or a number with KiB, MiB, GiB, TiB, KB, MB, GB or TB, "
      "such as 8GiB",
      c.index_memory);
}

}  // namespace

void CheckGiven(const CommandLine& line) {
  const TrainConfig& c = line.config;
  const std::pair<const char*, bool> needed[] = {
      {"num-layers", c.model.num_layers > 0},
      {"hidden-size", c.model.hidden_size > 0},
      {"num-attention-heads", c.model.num_attention_heads > 0},
      {"seq-length", c.model.seq_length > 0},
      {"max-position-embeddings", c.model.max_position_embeddings > 0},
      {"micro-batch-size", c.micro_batch_size > 0},
      {"lr", c.lr.has_value()},
  };
  for (const auto& [flag, given] : needed) Require(given, "--{} is needed", flag);
  Require(c.vocab_size > 0,
          "--vocab-size is needed: neither --tokenizer-type nor --load-hf says how large the "
          "vocabulary is");
  Require(c.train_iters.has_value() != c.train_samples.has_value(),
          "give one of --train-iters and --train-samples");
  Require(c.rampup_batch_size.empty(),
          "--rampup-batch-size: the batch size is constant in this version; leave it out");
  if (c.train_samples) {
    Require(!c.lr_decay_iters && c.lr_warmup_iters == 0,
            "--train-samples goes with --lr-decay-samples and --lr-warmup-samples, not with the "
            "-iters ones");
  } else {
    Require(!c.lr_decay_samples && c.lr_warmup_samples == 0,
            "--train-iters goes with --lr-decay-iters and --lr-warmup-iters, not with the -samples "
            "ones");
  }
  Require(!c.lr_warmup_fraction || (c.lr_warmup_iters == 0 && c.lr_warmup_samples == 0),
          "--lr-warmup-fraction excludes --lr-warmup-iters and --lr-warmup-samples");
  CheckDataPaths(line);
  CheckDataRules(c);
}

void CheckGlobalBatch(int64_t global_batch, int64_t micro_batch, int64_t data_parallel) {
  const int64_t step = micro_batch * data_parallel;
  Require(global_batch % step == 0,
          "--global-batch-size {} is not divisible by --micro-batch-size {} * data parallel size "
          "{} = {}; nearest: {}",
          global_batch, micro_batch, data_parallel, step, NearestMultiples(global_batch, step));
}

void CheckLength(const TrainConfig& c, int64_t iterations) {
  const auto check = [&c](const char* what, int64_t value) {
    int64_t samples = 0;
    Require(
        !__builtin_mul_overflow(value, c.global_batch_size, &samples) && samples <= kMostSamples,
        "{} {} * --global-batch-size {} is more than {} samples", what, value, c.global_batch_size,
        kMostSamples);
  };
  check(c.train_samples ? "--train-samples / --global-batch-size =" : "--train-iters", iterations);
  check("--lr-decay-iters", c.lr_decay_iters.value_or(0));
  check("--lr-warmup-iters", c.lr_warmup_iters);
  int64_t evaluated = 0;
  Require(!__builtin_mul_overflow(iterations / c.eval_interval + 1, c.eval_iters, &evaluated),
          "--eval-iters {} in each of {} evaluations are more than can be counted", c.eval_iters,
          iterations / c.eval_interval + 1);
  check("--eval-iters of all evaluations =", evaluated);
}

void CheckModel(const TrainConfig& c) {
  const ModelConfig& m = c.model;
  Require(m.max_position_embeddings >= m.seq_length,
          "--seq-length {} is above --max-position-embeddings {}", m.seq_length,
          m.max_position_embeddings);
  CheckDivides("num-attention-heads", m.num_attention_heads, "num-query-groups",
               m.num_query_groups);
  Require(m.kv_channels % 2 == 0, "--kv-channels {}: rotary embeddings need an even number",
          m.kv_channels);
  Require(m.ffn_hidden_size > 0,
          "--ffn-hidden-size is needed: --hidden-size {} is too small to derive it", m.hidden_size);
  Require(c.rotary_percent == 1.0, "--rotary-percent {}: Llama rotates whole heads; use 1.0",
          c.rotary_percent);
  Require(c.seed <= std::numeric_limits<uint32_t>::max(),
          "--seed {}: NumPy's generator, which orders the data, takes at most {}", c.seed,
          std::numeric_limits<uint32_t>::max());
  RequireZero("attention-dropout", c.attention_dropout);
  RequireZero("hidden-dropout", c.hidden_dropout);
}

// What only one of the devices can do.
void CheckDevice(const TrainConfig& c) {
  if (c.device == "cpu") {
    Require(c.exp_avg_dtype == "fp32", "--exp-avg-dtype {} goes with --device cuda",
            c.exp_avg_dtype);
    return;
  }
  Require(c.params_dtype == "bf16", "--device cuda computes in bf16 or FP8: add --bf16");
  const std::pair<const char*, bool> masks[] = {
      {"reset-position-ids", c.reset_position_ids},
      {"reset-attention-mask", c.reset_attention_mask},
      {"dataloader-inter-document-masking", c.inter_document_masking},
  };
  for (const auto& [flag, given] : masks) {
    Require(!given,
            "--{}: --device cuda sees each sequence whole; leave it out, or use --device cpu",
            flag);
  }
  Require(!c.grad_reduce_in_bf16 || !c.fp8_format.empty(),
          "--grad-reduce-in-bf16: --device cuda has bf16 gradients for FP8 linears alone; add "
          "--fp8-format hybrid, or leave it out");
}

void CheckPrecision(const TrainConfig& c) {
  Require(!c.fp16, "--fp16 is not supported; use --bf16");
  Require(!c.bf16 || c.params_dtype == "bf16", "--bf16 and --params-dtype {} disagree",
          c.params_dtype);
  Require(!c.fp8_param_gather || !c.fp8_format.empty(), "--fp8-param-gather needs --fp8-format");
  Require(!c.grad_reduce_in_bf16 || c.params_dtype != "fp64",
          "--grad-reduce-in-bf16 goes with --params-dtype fp32 or bf16");
  Require(c.exp_avg_dtype == c.exp_avg_sq_dtype,
          "--exp-avg-dtype {} and --exp-avg-sq-dtype {}: both moments have one precision here",
          c.exp_avg_dtype, c.exp_avg_sq_dtype);
  CheckDevice(c);
  if (c.fp8_format.empty()) return;
  Require(c.params_dtype != "fp64", "--fp8-format goes with --params-dtype fp32 or bf16");
  // The sizes that the hardware's FP8 products take.
  const ModelConfig& m = c.model;
  const std::pair<const char*, int64_t> sixteens[] = {
      {"hidden-size", m.hidden_size},
      {"ffn-hidden-size", m.ffn_hidden_size},
      {"kv-channels * num-attention-heads", m.kv_channels * m.num_attention_heads},
      {"kv-channels * (num-attention-heads + 2 * num-query-groups)",
       m.kv_channels * (m.num_attention_heads + 2 * m.num_query_groups)},
  };
  for (const auto& [what, size] : sixteens) {
    Require(size % 16 == 0, "--{} {}: FP8 needs a multiple of 16; nearest: {}", what, size,
            NearestMultiples(size, 16));
  }
  Require(c.micro_batch_size * m.seq_length % 8 == 0,
          "--micro-batch-size {} * --seq-length {}: FP8 needs a multiple of 8", c.micro_batch_size,
          m.seq_length);
}

void CheckSchedule(const CommandLine& line, const RunSizes& sizes) {
  const TrainConfig& c = line.config;
  Require(c.min_lr <= *c.lr, "--min-lr {} is above --lr {}", c.min_lr, *c.lr);
  Require(c.lr_warmup_init <= *c.lr, "--lr-warmup-init {} is above --lr {}", c.lr_warmup_init,
          *c.lr);
  if (c.decoupled_min_lr) {
    Require(c.decoupled_lr.has_value(), "--decoupled-min-lr needs --decoupled-lr");
    Require(*c.decoupled_min_lr <= *c.decoupled_lr,
            "--decoupled-min-lr {} is above --decoupled-lr {}", *c.decoupled_min_lr,
            *c.decoupled_lr);
  }
  Require(c.adam_beta1 < 1 && c.adam_beta2 < 1,
          "--adam-beta1 {} and --adam-beta2 {} must be below 1", c.adam_beta1, c.adam_beta2);
  Require(!c.train_samples || sizes.train_iters > 0,
          "--train-samples {} is less than one iteration of --global-batch-size {}",
          c.train_samples.value_or(0), c.global_batch_size);
  if (sizes.train_iters == 0) return;
  Require(sizes.lr_warmup_samples < static_cast<double>(sizes.lr_decay_samples),
          "learning rate: the warm-up ({} samples) must end before the decay ({} samples)",
          sizes.lr_warmup_samples, sizes.lr_decay_samples);
}

void CheckFiles(const TrainConfig& c) {
  Require(!c.save_interval || !c.save.empty(), "--save-interval needs --save DIR");
  Require(!c.finetune || !c.load.empty(), "--finetune needs --load DIR");
}

}  // namespace muster::config
