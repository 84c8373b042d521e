#include "tests/parallel/layout_run.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>

#include <limits>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "tests/parallel/in_process.h"
#include "trainer/engine/engine.h"
#include "trainer/model/shard.h"
#include "trainer/optim/gradients.h"

namespace muster::testing {
namespace {

constexpr int64_t kPositions = 16;

uint64_t Mix(uint64_t x) {
  x ^= x >> 31;
  x *= 0x9e3779b97f4a7c15;
  return x ^ (x >> 29);
}

// Of every three samples one counts whole, one without every fifth token, and one without its ends:
// all that the first of four context-parallel ranks has of it.
bool Counts(int64_t sample, int64_t position) {
  if (sample % 3 == 1) return position % 5 != 2;
  return sample % 3 == 0 || (position >= 2 && position < kPositions - 2);
}

// Samples of the run: tokens that follow from their places.
data::Batch Samples(int64_t first, int64_t count, int64_t vocab) {
  data::Batch batch;
  batch.tokens_BS = at::empty({count, kPositions}, at::kLong);
  batch.labels_BS = at::empty({count, kPositions}, at::kLong);
  batch.loss_mask_BS = at::empty({count, kPositions}, at::kFloat);
  for (int64_t row = 0; row < count; ++row) {
    const int64_t sample = first + row;
    for (int64_t i = 0; i <= kPositions; ++i) {
      const auto seed = static_cast<uint64_t>(sample % 7 * 1000 + i);
      const auto token = static_cast<int64_t>(Mix(seed + 1) % static_cast<uint64_t>(vocab));
      const int64_t at = row * kPositions + i;
      if (i < kPositions) batch.tokens_BS.data_ptr<int64_t>()[at] = token;
      if (i > 0) batch.labels_BS.data_ptr<int64_t>()[at - 1] = token;
      if (i < kPositions) {
        batch.loss_mask_BS.data_ptr<float>()[at] = Counts(sample, i) ? 1.0f : 0.0f;
      }
    }
  }
  return batch;
}

// Writes this rank's shards into the whole tensors that the ranks share, which begin as NaN. Throws
// when another rank had other values: replicas and tied copies are equal bit for bit.
void Collect(const parallel::Groups& groups, const std::vector<model::Parameter>& parameters,
             std::map<std::string, at::Tensor>& whole) {
  const model::Share share = {groups.coordinate.tensor, groups.sizes.tensor};
  for (const model::Parameter& parameter : parameters) {
    at::Tensor& tensor = whole[parameter.name];
    if (!tensor.defined()) {
      std::vector<int64_t> shape = parameter.value.sizes().vec();
      if (parameter.split.dim >= 0) shape[static_cast<size_t>(parameter.split.dim)] *= share.size;
      tensor =
          at::full(shape, std::numeric_limits<double>::quiet_NaN(), parameter.value.scalar_type());
    }
    const at::Tensor part = model::ShardView(tensor, parameter.split, share);
    const at::Tensor mine = parameter.value.view(part.sizes());
    if (part.isnan().all().item<bool>()) part.copy_(mine);
    if (!at::equal(part, mine)) throw std::logic_error(parameter.name + " differs between ranks");
  }
}

}  // namespace

config::TrainConfig SmallConfig() {
  config::TrainConfig config;
  config::ModelConfig& model = config.model;
  model.num_layers = 8;
  model.hidden_size = 16;
  model.ffn_hidden_size = 24;
  model.num_attention_heads = 8;
  model.num_query_groups = 4;
  model.kv_channels = 4;
  model.padded_vocab_size = 40;
  model.seq_length = model.max_position_embeddings = kPositions;
  model.params_dtype = config::DType::kFp64;
  model.apply_layernorm_1p = true;
  model.untie_embeddings_and_output_weights = true;
  model.init_method_std = 0.2;
  config.params_dtype = "fp64";
  config.micro_batch_size = 1;
  config.global_batch_size = 8;
  config.adam_beta2 = 0.95;
  config.weight_decay = 0.1;
  config.calculate_per_token_loss = true;
  return config;
}

Trajectory TrainOn(const parallel::ParallelSizes& sizes, const config::TrainConfig& config,
                   int64_t iterations, std::vector<Traffic>* traffic) {
  Trajectory result;
  std::mutex mutex;
  const auto body = [&](const parallel::Groups& groups) {
    const auto engine = engine::MakeCpuEngine(config, groups);
    const int64_t micro = config.micro_batch_size, data = groups.coordinate.data;
    const int64_t count = config.global_batch_size / (micro * sizes.data);
    for (int64_t iteration = 0; iteration < iterations; ++iteration) {
      engine->BeginIteration();
      engine->ForwardBackward({.count = count,
                               .load =
                                   [&](int64_t number) {
                                     const int64_t first = iteration * config.global_batch_size +
                                                           (number * sizes.data + data) * micro;
                                     data::Batch batch =
                                         Samples(first, micro, config.model.padded_vocab_size);
                                     const auto tokens = batch.loss_mask_BS.sum().item<double>();
                                     return engine::MicroBatch{std::move(batch), tokens};
                                   }},
                              config.calculate_per_token_loss ? engine::Averaging::kTokens
                                                              : engine::Averaging::kMicroBatches);
      const engine::Sums sums = engine->TakeSums();
      double values[2] = {0, 0};
      if (groups.CountsLoss()) {
        values[0] = sums.loss;
        values[1] = sums.tokens;
      }
      groups.world->AllReduce(at::from_blob(values, {2}, at::kDouble), parallel::ReduceOp::kSum);
      engine->ReduceGradients();
      const double norm = engine->Normalize(config.calculate_per_token_loss ? values[1] : 1);
      engine->Step({.standard = 3e-3, .decoupled = 5e-3}, optim::ClipCoefficient(norm, 1.0));
      const std::lock_guard lock(mutex);
      if (groups.world->rank() == groups.world->size() - 1) {
        result.losses.push_back(values[0] / values[1]);
        result.norms.push_back(norm);
      }
    }
    const engine::State state = engine->Fetch(engine::Contents::kAll);
    const std::lock_guard lock(mutex);
    Collect(groups, state.parameters, result.values);
    for (const auto& [name, tensor] : state.fp8) {
      const auto [place, added] = result.fp8.emplace(name, tensor.clone());
      if (!added && !at::equal(place->second, tensor)) {
        throw std::logic_error(name + " differs between ranks");
      }
    }
  };
  Wrap count;
  if (traffic != nullptr) {
    count = [traffic](int64_t rank, std::unique_ptr<parallel::Communicator> group) {
      return std::make_unique<Counting>(std::move(group), &traffic->at(static_cast<size_t>(rank)));
    };
  }
  RunRanks(sizes, body, count);
  return result;
}

}  // namespace muster::testing
