#include "trainer/loop/run.h"

#include <fmt/format.h>

#include "trainer/checkpoint/hf_folder.h"
#include "trainer/config/error.h"
#include "trainer/parallel/gloo.h"
#include "trainer/parallel/single_rank.h"
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
  try {
    return tokenizer::MakeTokenizer(options);
  } catch (const tokenizer::TokenizerError& error) {
    throw ConfigError(error.what());
  }
}

// The end-of-document token, for the flags that need one.
int64_t EndOfDocument(const TrainConfig& config) {
  if (!config.eod_mask_loss && !config.mock_data) return -1;
  if (config.tokenizer_type.empty()) {
    if (config.eod_mask_loss)
      throw ConfigError("--eod-mask-loss needs --tokenizer-type to know the EOD token");
    return config.vocab_size - 1;  // NullTokenizer's
  }
  const auto eod = OpenTokenizer(config)->eod();
  if (!eod) {
    throw ConfigError(fmt::format(
        "--tokenizer-type {}: has no end-of-document token, which {} needs", config.tokenizer_type,
        config.eod_mask_loss ? "--eod-mask-loss" : "--mock-data"));
  }
  return *eod;
}

std::unique_ptr<parallel::Communicator> Connect(const TrainConfig& config,
                                                const config::RankEnvironment& env) {
  if (env.world_size == 1) return std::make_unique<parallel::SingleRank>();
  parallel::GlooOptions options;
  options.master_addr = env.master_addr;
  options.master_port = env.master_port;
  options.rank = env.rank;
  options.world_size = env.world_size;
  options.timeout =
      std::chrono::milliseconds(static_cast<int64_t>(config.distributed_timeout_minutes * 60'000));
  options.external_store = env.agent_hosts_store;
  options.group_name = fmt::format("attempt_{}", env.restart_count);
  options.interface = env.socket_interface;
  return parallel::ConnectGloo(options);
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
  data.data_path = c.data_path;
  data.train_data_path = c.train_data_path;
  data.valid_data_path = c.valid_data_path;
  data.test_data_path = c.test_data_path;
  data.mock_data = c.mock_data;
  data.split = c.split;
  data.order = c.data_order == "sequential" ? data::DataOrder::kSequential
               : c.data_order == "document" ? data::DataOrder::kDocument
                                            : data::DataOrder::kShuffled;
  data.seq_length = c.model.seq_length;
  data.seed = static_cast<uint32_t>(c.seed);
  data.train_samples = c.train_samples.value_or(run.sizes.train_samples);
  data.valid_samples = (run.sizes.train_iters / c.eval_interval + 1) * eval_samples;
  data.test_samples = eval_samples;
  data.vocab_size = c.model.padded_vocab_size;
  data.eod = EndOfDocument(c);
  data.eod_mask_loss = c.eod_mask_loss;
  data.mmap_bin_files = !c.no_mmap_bin_files;
  return data;
}

void Prepare(Run& run) {
  const TrainConfig& c = run.config();
  run.shard = {.micro_batch_size = c.micro_batch_size,
               .dp_size = run.env.world_size,
               .dp_rank = run.env.rank};
  MakeSchedules(run);
  // Connected first, so that a rank whose data is missing is noticed by the others at once.
  run.data_parallel = Connect(c, run.env);
  run.data = data::BuildDatasets(MakeDataConfig(run));
  if (run.data.train == nullptr && run.sizes.train_iters > 0) {
    throw ConfigError(fmt::format("--split {}: nothing is left to train on", c.split));
  }
  run.engine = engine::MakeEngine(c, run.env.local_rank, run.data_parallel.get());
}

}  // namespace muster::loop
