#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/parallel/counting.h"
#include "tests/parallel/layout_run.h"

// The bytes that a rank exchanges in an iteration are those of the arithmetic in docs/parallel.md.

namespace muster {
namespace {

using ::testing::ContainerEq;
using testing::Traffic;

constexpr int64_t kBytes = 8;       // of an fp64 number
constexpr int64_t kPositions = 16;  // of a sequence; a micro-batch is one

// What the test's own loop exchanges: loss and token sums, and the gradient's norm.
constexpr int64_t kSums = 2 * kBytes, kNorm = kBytes;

config::TrainConfig Config(const parallel::ParallelSizes& sizes, bool sequence) {
  config::TrainConfig config = testing::SmallConfig();
  config.tensor_model_parallel_size = sizes.tensor;
  config.context_parallel_size = sizes.context;
  config.pipeline_model_parallel_size = sizes.pipeline;
  config.sequence_parallel = sequence;
  return config;
}

std::vector<Traffic> Measure(const parallel::ParallelSizes& sizes,
                             const config::TrainConfig& config) {
  std::vector<Traffic> traffic(static_cast<size_t>(sizes.world()));
  testing::TrainOn(sizes, config, 1, &traffic);
  return traffic;
}

// Of one tensor-parallel rank's layers of that number.
int64_t Weights(const config::ModelConfig& m, int64_t layers, int64_t tensor) {
  const int64_t attention = m.num_attention_heads * m.kv_channels;
  const int64_t qkv = attention + 2 * m.num_query_groups * m.kv_channels;
  return layers *
         (m.hidden_size * (qkv + attention + 3 * m.ffn_hidden_size) / tensor + 2 * m.hidden_size);
}

TEST(Traffic, TensorParallel) {
  const parallel::ParallelSizes sizes = {.tensor = 2};
  const config::TrainConfig config = Config(sizes, false);
  const config::ModelConfig& m = config.model;
  const int64_t activation = kPositions * m.hidden_size * kBytes;
  // Two all-reduces of a layer in each direction, one of the embedding, one of the head's gradient,
  // and three numbers of each token in the loss.
  const int64_t micro_batch = (4 * m.num_layers + 2) * activation + 3 * kPositions * kBytes;
  const Traffic expected = {{"all-reduce", config.global_batch_size * micro_batch + kSums + kNorm}};
  for (const Traffic& rank : Measure(sizes, config)) EXPECT_THAT(rank, ContainerEq(expected));
}

TEST(Traffic, SequenceParallel) {
  const parallel::ParallelSizes sizes = {.tensor = 2};
  const config::TrainConfig config = Config(sizes, true);
  const config::ModelConfig& m = config.model;
  const int64_t activation = kPositions * m.hidden_size * kBytes;
  // An all-gather and a reduce-scatter instead of each all-reduce; embedding and head add one of
  // each; the norms' gradients are summed once an iteration.
  const int64_t each = config.global_batch_size * (4 * m.num_layers + 2) * activation;
  const int64_t norms = (2 * m.num_layers + 1) * m.hidden_size * kBytes;
  const int64_t loss = config.global_batch_size * 3 * kPositions * kBytes;
  const Traffic expected = {
      {"all-reduce", loss + norms + kSums + kNorm}, {"all-gather", each}, {"reduce-scatter", each}};
  for (const Traffic& rank : Measure(sizes, config)) EXPECT_THAT(rank, ContainerEq(expected));
}

TEST(Traffic, Pipeline) {
  const parallel::ParallelSizes sizes = {.pipeline = 4};
  config::TrainConfig config = Config(sizes, false);
  config.model.untie_embeddings_and_output_weights = false;
  const config::ModelConfig& m = config.model;
  const int64_t activation = config.global_batch_size * kPositions * m.hidden_size * kBytes;
  const int64_t embedding = m.padded_vocab_size * m.hidden_size * kBytes;
  const std::vector<Traffic> measured = Measure(sizes, config);
  for (size_t stage = 0; stage < 4; ++stage) {
    const bool end = stage == 0 || stage == 3;
    // To the next stage, and back to the one before.
    Traffic expected = {{"all-reduce", kSums + kNorm + (end ? embedding : 0)},
                        {"send", (end ? 1 : 2) * activation}};
    if (end) expected["broadcast"] = embedding;
    EXPECT_THAT(measured[stage], ContainerEq(expected)) << stage;
  }
}

TEST(Traffic, VirtualStagesSendOncePerChunk) {
  const parallel::ParallelSizes sizes = {.pipeline = 2};
  config::TrainConfig config = Config(sizes, false);
  config.num_virtual_stages_per_pipeline_rank = 4;
  const int64_t activation =
      config.global_batch_size * kPositions * config.model.hidden_size * kBytes;
  // 8 chunks in a row have 7 borders; each rank sends forward over those behind its chunks, and
  // back over those before them.
  for (const Traffic& rank : Measure(sizes, config)) EXPECT_EQ(rank.at("send"), 7 * activation);
}

TEST(Traffic, ContextParallel) {
  for (const bool ring : {true, false}) {
    const parallel::ParallelSizes sizes = {.context = 4};
    config::TrainConfig config = Config(sizes, false);
    config.cp_comm_type = ring ? "p2p" : "all_gather";
    const config::ModelConfig& m = config.model;
    const int64_t keys_and_values =
        2 * kPositions / 4 * m.num_query_groups * m.kv_channels * kBytes;
    const int64_t layers = config.global_batch_size * m.num_layers;
    const int64_t ends = 2 * m.padded_vocab_size * m.hidden_size + m.hidden_size;
    const int64_t gradients = (Weights(m, m.num_layers, 1) + ends) * kBytes;
    Traffic expected = {{"all-reduce", gradients + kSums}};
    if (ring) {
      // Three steps forward, three again backward, and the gradients' four.
      expected["send"] = layers * (3 + 3 + 4) * keys_and_values;
    } else {
      expected["all-gather"] = layers * 2 * 4 * keys_and_values;
      expected["reduce-scatter"] = layers * 4 * keys_and_values;
    }
    for (const Traffic& rank : Measure(sizes, config)) EXPECT_THAT(rank, ContainerEq(expected));
  }
}

TEST(Traffic, DataParallel) {
  for (const bool distributed : {false, true}) {
    const parallel::ParallelSizes sizes = {.data = 4};
    config::TrainConfig config = Config(sizes, false);
    config.use_distributed_optimizer = distributed;
    const config::ModelConfig& m = config.model;
    const int64_t ends = 2 * m.padded_vocab_size * m.hidden_size + m.hidden_size;
    const int64_t parameters = (Weights(m, m.num_layers, 1) + ends) * kBytes;
    ASSERT_EQ(parameters % 4, 0);  // no padding
    const Traffic expected = distributed ? Traffic{{"all-reduce", kSums + kNorm},
                                                   {"reduce-scatter", parameters},
                                                   {"all-gather", 3 * parameters}}
                                         // values; both moments when fetched
                                         : Traffic{{"all-reduce", parameters + kSums}};
    for (const Traffic& rank : Measure(sizes, config)) EXPECT_THAT(rank, ContainerEq(expected));
  }
}

}  // namespace
}  // namespace muster
