#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/model_config.h"

// Everything that the command line can say, with the defaults here in the struct. The names are
// Megatron's flags with underscores; flag_table.h binds each to its flag. Plain values.

namespace muster::config {

struct TrainConfig {
  // Model. `model` holds what the network needs; the fields below it are turned into it by
  // Resolve().
  ModelConfig model;
  bool group_query_attention = false;
  std::string normalization = "RMSNorm";
  std::string position_embedding_type = "rope";
  double rotary_percent = 1.0;
  double attention_dropout = 0;
  double hidden_dropout = 0;
  int64_t vocab_size = 0;  // 0: the tokenizer's
  int64_t make_vocab_size_divisible_by = 128;
  int64_t seed = 1234;

  // Batches and length of the run.
  int64_t micro_batch_size = 0;
  int64_t global_batch_size = 0;  // 0: micro_batch_size * data parallel size
  std::vector<std::string> rampup_batch_size;
  std::optional<int64_t> train_iters;
  std::optional<int64_t> train_samples;
  std::optional<int64_t> exit_interval;
  std::optional<double> exit_duration_in_mins;
  bool exit_signal_handler = false;
  bool calculate_per_token_loss = false;
  bool no_check_for_nan = false;
  std::string device = "cpu";
  bool deterministic_mode = false;
  std::string gemm_tuning_cache;

  // Optimizer and learning rate.
  std::optional<double> lr;
  double min_lr = 0;
  std::optional<double> decoupled_lr;
  std::optional<double> decoupled_min_lr;
  std::string lr_decay_style = "linear";
  std::optional<int64_t> lr_decay_iters;
  std::optional<int64_t> lr_decay_samples;
  std::optional<double> lr_warmup_fraction;
  int64_t lr_warmup_iters = 0;
  int64_t lr_warmup_samples = 0;
  double lr_warmup_init = 0;
  double weight_decay = 0.01;
  double clip_grad = 1.0;
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.999;
  double adam_eps = 1e-8;
  std::string optimizer = "adam";
  std::string exp_avg_dtype;  // of both moments: fp32, bf16; empty: by --device
  std::string exp_avg_sq_dtype;

  // Precision.
  bool bf16 = false;
  bool fp16 = false;
  std::string params_dtype;  // fp32, bf16, fp64; empty: by --bf16
  bool grad_reduce_in_bf16 = false;
  std::string fp8_format;  // empty: no FP8
  std::string fp8_recipe = "delayed";
  std::string fp8_amax_compute_algo = "most_recent";
  int64_t fp8_margin = 0;
  bool fp8_param_gather = false;
  bool tp_only_amax_red = false;
  std::string fp8_fast_accumulation = "forward";

  // Memory.
  std::string recompute_granularity;  // empty: by the other flags
  std::string recompute_method;
  std::optional<int64_t> recompute_num_layers;
  std::vector<std::string> recompute_modules;
  bool recompute_activations = false;

  // Parallelism.
  int64_t tensor_model_parallel_size = 1;
  int64_t pipeline_model_parallel_size = 1;
  bool sequence_parallel = false;
  std::optional<int64_t> num_layers_per_virtual_pipeline_stage;
  std::optional<int64_t> num_virtual_stages_per_pipeline_rank;
  std::optional<int64_t> microbatch_group_size_per_virtual_pipeline_stage;
  std::optional<int64_t> decoder_first_pipeline_num_layers;
  std::optional<int64_t> decoder_last_pipeline_num_layers;
  bool account_for_embedding_in_pipeline_split = false;
  bool account_for_loss_in_pipeline_split = false;
  int64_t context_parallel_size = 1;
  std::string cp_comm_type = "p2p";
  double distributed_timeout_minutes = 10;
  bool use_distributed_optimizer = false;
  bool overlap_grad_reduce = false;
  bool overlap_param_gather = false;

  // Data and tokenizer.
  std::vector<std::string> data_path;
  std::vector<std::string> train_data_path;
  std::vector<std::string> valid_data_path;
  std::vector<std::string> test_data_path;
  std::string data_args_path;
  std::string per_split_data_args_path;
  bool mock_data = false;
  std::string split = "969, 30, 1";
  std::string data_order = "shuffled";
  std::string index_order = "megatron";
  std::string index_memory = "8GiB";
  std::string data_cache_path;  // empty: Megatron's place beside the data
  double mid_level_dataset_surplus = 0.005;
  std::string dataloader_type = "single";
  bool eod_mask_loss = false;
  bool reset_position_ids = false;
  bool reset_attention_mask = false;
  bool inter_document_masking = false;
  bool no_create_attention_mask = false;
  bool no_mmap_bin_files = false;
  std::string tokenizer_type;
  std::string tokenizer_model;
  std::string vocab_file;
  std::string merge_file;
  std::string tiktoken_pattern = "v2";
  int64_t tiktoken_num_special_tokens = 1000;
  std::vector<std::string> tokenizer_special_tokens;
  bool tokenizer_sentencepiece_legacy = false;

  // Evaluation.
  int64_t eval_iters = 100;
  int64_t eval_interval = 1000;

  // Checkpoints.
  std::string save;
  std::string load;
  std::optional<int64_t> save_interval;
  bool finetune = false;
  bool no_load_optim = false;
  bool no_save_optim = false;
  bool exit_on_missing_checkpoint = false;
  bool override_opt_param_scheduler = false;
  std::string load_hf;
  std::string save_hf;

  // Output.
  int64_t log_interval = 100;
  bool log_throughput = false;
  bool log_energy = false;
  bool log_all_ranks = false;
  bool report_baselines = false;
};

}  // namespace muster::config
