#include "trainer/loop/run.h"

#include <fmt/format.h>

#include <cstdio>

#include "trainer/checkpoint/hf_folder.h"
#include "trainer/config/bytes.h"
#include "trainer/config/error.h"
#include "trainer/data/streamed_source.h"
#include "trainer/loop/tokenizer_identity.h"
#include "trainer/parallel/gloo.h"
#include "trainer/tokenizer/factory.h"

namespace muster::loop {
namespace {

using config::TrainConfig;

std::unique_ptr<tokenizer::Tokenizer> OpenTokenizer(const TrainConfig& config) {
  tokenizer::TokenizerOptions options;
  options.type = config.tokenizer_type;
  options.model = config.tokenizer_model;
  options.vocab_size = config.vocab_size;
  options.vocab_file = config.vocab_file;
  options.merge_file = config.merge_file;
  options.tiktoken_pattern = config.tiktoken_pattern;
  options.tiktoken_num_special_tokens = config.tiktoken_num_special_tokens;
  options.special_tokens = config.tokenizer_special_tokens;
  options.sentencepiece_legacy = config.tokenizer_sentencepiece_legacy;
  try {
    return tokenizer::MakeTokenizer(options);
  } catch (const tokenizer::TokenizerError& error) {
    throw ConfigError(error.what());
  }
}

// The flag that needs an end-of-document token, or null.
const char* FlagThatNeedsEod(const TrainConfig& config) {
  if (config.eod_mask_loss) return "--eod-mask-loss";
  if (config.reset_position_ids) return "--reset-position-ids";
  if (config.reset_attention_mask) return "--reset-attention-mask";
  return config.mock_data ? "--mock-data" : nullptr;
}

int64_t EndOfDocument(const TrainConfig& config) {
  const char* const flag = FlagThatNeedsEod(config);
  if (flag == nullptr) return -1;
  if (config.tokenizer_type.empty()) {
    if (config.mock_data) return config.vocab_size - 1;  // NullTokenizer's
    throw ConfigError(fmt::format("{} needs --tokenizer-type to know the EOD token", flag));
  }
  const auto eod = OpenTokenizer(config)->eod();
  if (!eod) {
    throw ConfigError(
        fmt::format("--tokenizer-type {}: has no end-of-document token, which {} needs",
                    config.tokenizer_type, flag));
  }
  return *eod;
}

// Labels equal to it do not count in the loss. -1: none does.
int64_t Padding(const TrainConfig& config) {
  return config.tokenizer_type.empty() ? -1 : OpenTokenizer(config)->pad().value_or(-1);
}

// Rank 0 says what concerns the run, every process what concerns itself.
data::DataReport MakeDataReport(const config::RankEnvironment& env) {
  data::DataReport report;
  if (env.rank == 0) {
    report.note = [](const std::string& text) {
      std::fputs((" " + text + "\n").c_str(), stdout);
      std::fflush(stdout);
    };
  }
  report.warn = [rank = env.rank](const std::string& text) {
    std::fputs(fmt::format("rank {}: warning: {}\n", rank, text).c_str(), stderr);
  };
  return report;
}

parallel::Groups Connect(const TrainConfig& config, const config::RankEnvironment& env,
                         int64_t data_parallel_size) {
  if (env.world_size == 1) return parallel::SingleRankGroups();
  parallel::GlooOptions options;
  options.master_addr = env.master_addr;
  options.master_port = env.master_port;
  options.rank = env.rank;
  options.world_size = env.world_size;
  options.timeout =
      std::chrono::milliseconds(static_cast<int64_t>(config.distributed_timeout_minutes * 60'000));
  options.external_store = env.agent_hosts_store;
  options.run_name = fmt::format("attempt_{}", env.restart_count);
  options.interface = env.socket_interface;
  parallel::GlooWorld world(options);
  const parallel::ParallelSizes sizes = {.tensor = config.tensor_model_parallel_size,
                                         .context = config.context_parallel_size,
                                         .data = data_parallel_size,
                                         .pipeline = config.pipeline_model_parallel_size};
  const auto connect = [&world](const std::string& name, const std::vector<int64_t>& ranks) {
    return world.Connect(name, ranks);
  };
  return parallel::MakeGroups(
      sizes, env.rank, connect,
      config.tp_only_amax_red ? parallel::kTensorAmaxGroup : parallel::kAmaxGroup);
}

optim::LrDecayStyle ToStyle(const std::string& name) {
  if (name == "constant") return optim::LrDecayStyle::kConstant;
  if (name == "cosine") return optim::LrDecayStyle::kCosine;
  if (name == "inverse-square-root") return optim::LrDecayStyle::kInverseSquareRoot;
  return optim::LrDecayStyle::kLinear;
}

void MakeSchedules(Run& run) {
  const TrainConfig& c = run.config();
  run.lr = {.style = ToStyle(c.lr_decay_style),
            .max_lr = c.lr.value_or(0),
            .min_lr = c.min_lr,
            .warmup_init = c.lr_warmup_init,
            .warmup_samples = run.sizes.lr_warmup_samples,
            .decay_samples = run.sizes.lr_decay_samples};
  run.decoupled_lr = run.lr;
  if (c.decoupled_lr) {
    run.decoupled_lr.max_lr = *c.decoupled_lr;
    run.decoupled_lr.min_lr = c.decoupled_min_lr.value_or(c.min_lr);
  }
}

}  // namespace

config::RunSizes ResolveAll(int64_t world_size, config::CommandLine& line) {
  TrainConfig& config = line.config;
  if (!config.load_hf.empty()) config::AdoptModel(checkpoint::ReadHfModel(config.load_hf), line);
  if (config.vocab_size == 0 && !config.tokenizer_type.empty()) {
    config.vocab_size = OpenTokenizer(config)->vocab_size();
    line.origins["vocab-size"] = "tokenizer";
  }
  return config::Resolve(world_size, line);
}

data::DataConfig MakeDataConfig(const Run& run) {
  const TrainConfig& c = run.config();
  const int64_t eval_samples = c.eval_iters * c.global_batch_size;
  data::DataConfig data;
  data.paths.data_path = c.data_path;
  data.paths.train_data_path = c.train_data_path;
  data.paths.valid_data_path = c.valid_data_path;
  data.paths.test_data_path = c.test_data_path;
  data.paths.data_args_path = c.data_args_path;
  data.paths.per_split_data_args_path = c.per_split_data_args_path;
  data.mock_data = c.mock_data;
  data.split = c.split;
  data.order = c.data_order == "sequential" ? data::DataOrder::kSequential
               : c.data_order == "document" ? data::DataOrder::kDocument
                                            : data::DataOrder::kShuffled;
  data.index_order =
      c.index_order == "streamed" ? data::IndexOrder::kStreamed : data::IndexOrder::kMegatron;
  data.seq_length = c.model.seq_length;
  data.seed = static_cast<uint32_t>(c.seed);
  data.train_samples = c.train_samples.value_or(run.sizes.train_samples);
  data.valid_samples = (run.sizes.train_iters / c.eval_interval + 1) * eval_samples;
  data.test_samples = eval_samples;
  data.vocab_size = c.model.padded_vocab_size;
  data.eod = EndOfDocument(c);
  data.pad = Padding(c);
  data.eod_mask_loss = c.eod_mask_loss;
  data.reset_position_ids = c.reset_position_ids;
  data.reset_attention_mask = c.reset_attention_mask;
  data.inter_document_masking = c.inter_document_masking;
  data.mid_level_dataset_surplus = c.mid_level_dataset_surplus;
  data.index_memory = config::ParseBytes(c.index_memory).value_or(data.index_memory);
  data.use_index_cache = true;
  data.data_cache_path = c.data_cache_path;
  data.tokenizer_identity = TokenizerIdentity(run.line);
  data.mmap_bin_files = !c.no_mmap_bin_files;
  data.report = MakeDataReport(run.env);
  return data;
}

std::string DataOrderText(const TrainConfig& config) {
  if (config.data_order != "shuffled") return config.data_order;
  if (config.index_order == "megatron") return "megatron";
  return fmt::format("{}, seed {}", data::kStreamedOrder, config.seed);
}

void Prepare(Run& run) {
  const TrainConfig& c = run.config();
  MakeSchedules(run);
  // Connected first, so that a rank whose data is missing is noticed by the others at once.
  run.groups = Connect(c, run.env, run.sizes.data_parallel_size);
  run.shard = {.micro_batch_size = c.micro_batch_size,
               .dp_size = run.groups.sizes.data,
               .dp_rank = run.groups.coordinate.data};
  run.data = data::BuildDatasets(MakeDataConfig(run));
  if (run.data.train == nullptr && run.sizes.train_iters > 0) {
    throw ConfigError(fmt::format("--split {}: nothing is left to train on", c.split));
  }
  run.engine = engine::MakeEngine(c, run.env.local_rank, run.groups);
}

}  // namespace muster::loop
