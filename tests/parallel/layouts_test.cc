#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/parallel/layout_run.h"
#include "trainer/config/layer_split.h"

// Every layout of ranks trains the same model: in fp64, ten iterations of one rank and of several
// differ by the order of sums alone. Those differ by some 1e-16 a sum; AdamW divides by the root of
// squared gradients, and each iteration starts from the weights of the one before, so the bound
// allows a thousandfold growth of 1e-13 over ten iterations.

namespace muster {
namespace {

constexpr int64_t kIterations = 10;
constexpr double kTolerance = 1e-10;

struct Layout {
  parallel::ParallelSizes sizes = {};
  bool sequence = false, tied = false, per_token = true;
  int64_t chunks = 1;
  bool ring = true, distributed = false;
  std::optional<int64_t> first_layers = {}, last_layers = {};
};

std::string Text(const Layout& l) {
  std::ostringstream out;
  out << "tp " << l.sizes.tensor << " cp " << l.sizes.context << " dp " << l.sizes.data << " pp "
      << l.sizes.pipeline << " vp " << l.chunks << (l.sequence ? " sequence" : "")
      << (l.tied ? " tied" : "") << (l.per_token ? "" : " micro-batch means")
      << (l.ring ? "" : " all-gather") << (l.distributed ? " distributed" : "");
  if (l.first_layers) out << " first " << *l.first_layers;
  if (l.last_layers) out << " last " << *l.last_layers;
  return out.str();
}

config::TrainConfig ConfigOf(const Layout& layout) {
  config::TrainConfig config = testing::SmallConfig();
  config.model.untie_embeddings_and_output_weights = !layout.tied;
  config.calculate_per_token_loss = layout.per_token;
  config.tensor_model_parallel_size = layout.sizes.tensor;
  config.context_parallel_size = layout.sizes.context;
  config.pipeline_model_parallel_size = layout.sizes.pipeline;
  config.sequence_parallel = layout.sequence;
  if (layout.chunks > 1) config.num_virtual_stages_per_pipeline_rank = layout.chunks;
  config.use_distributed_optimizer = layout.distributed;
  config.cp_comm_type = layout.ring ? "p2p" : "all_gather";
  config.decoder_first_pipeline_num_layers = layout.first_layers;
  config.decoder_last_pipeline_num_layers = layout.last_layers;
  return config;
}

// What one rank does, for each of the models.
const testing::Trajectory& Alone(bool tied, bool per_token) {
  static testing::Trajectory known[2][2];
  testing::Trajectory& result = known[tied][per_token];
  if (result.losses.empty()) {
    result = testing::TrainOn({}, ConfigOf({.tied = tied, .per_token = per_token}), kIterations);
  }
  return result;
}

void ExpectEqual(const Layout& layout) {
  SCOPED_TRACE(Text(layout));
  const testing::Trajectory& expected = Alone(layout.tied, layout.per_token);
  const testing::Trajectory actual = testing::TrainOn(layout.sizes, ConfigOf(layout), kIterations);
  ASSERT_EQ(actual.losses.size(), expected.losses.size());
  for (size_t i = 0; i < expected.losses.size(); ++i) {
    EXPECT_NEAR(actual.losses[i], expected.losses[i], kTolerance * expected.losses[i]) << i;
    EXPECT_NEAR(actual.norms[i], expected.norms[i], kTolerance * expected.norms[i]) << i;
  }
  ASSERT_EQ(actual.values.size(), expected.values.size());
  for (const auto& [name, value] : expected.values) {
    const at::Tensor error = actual.values.at(name).sub(value).abs().max();
    EXPECT_LE(error.item<double>(), kTolerance) << name;
  }
  // There was something to learn.
  EXPECT_LT(expected.losses.back(), expected.losses.front());
}

TEST(Layouts, Tensor) {
  for (const bool sequence : {false, true}) {
    ExpectEqual({.sizes = {.tensor = 2}, .sequence = sequence});
    ExpectEqual({.sizes = {.tensor = 4}, .sequence = sequence, .tied = true, .per_token = false});
  }
}

TEST(Layouts, TensorAndData) {
  ExpectEqual({.sizes = {.tensor = 2, .data = 2}, .sequence = true, .per_token = false});
  ExpectEqual({.sizes = {.data = 4}});
}

TEST(Layouts, Pipeline) {
  ExpectEqual({.sizes = {.pipeline = 2}});
  ExpectEqual({.sizes = {.pipeline = 4}, .tied = true, .per_token = false});
  ExpectEqual({.sizes = {.pipeline = 4}, .tied = true, .first_layers = 1, .last_layers = 1});
  ExpectEqual({.sizes = {.pipeline = 2}, .last_layers = 0});
}

TEST(Layouts, InterleavedPipeline) {
  ExpectEqual({.sizes = {.pipeline = 2}, .chunks = 2});
  ExpectEqual({.sizes = {.pipeline = 2}, .tied = true, .chunks = 4});
  ExpectEqual({.sizes = {.pipeline = 4}, .per_token = false, .chunks = 2});
}

TEST(Layouts, Context) {
  for (const bool ring : {true, false}) {
    ExpectEqual({.sizes = {.context = 2}, .ring = ring});
    ExpectEqual({.sizes = {.context = 4}, .per_token = false, .ring = ring});
  }
  ExpectEqual({.sizes = {.tensor = 2, .context = 2, .pipeline = 2}, .sequence = true, .chunks = 2});
  ExpectEqual({.sizes = {.context = 2, .data = 2, .pipeline = 2}, .tied = true, .ring = false});
}

TEST(Layouts, DistributedOptimizer) {
  ExpectEqual({.sizes = {.data = 2}, .distributed = true});
  ExpectEqual({.sizes = {.data = 4}, .per_token = false, .distributed = true});
  ExpectEqual({.sizes = {.tensor = 2, .data = 2, .pipeline = 2},
               .sequence = true,
               .tied = true,
               .distributed = true});
  ExpectEqual({.sizes = {.context = 2, .data = 2}, .distributed = true});
  // From three ranks on the order of sums differs between the pieces of the buffer.
  ExpectEqual({.sizes = {.data = 4, .pipeline = 2}, .tied = true, .distributed = true});
}

TEST(Layouts, Together) {
  ExpectEqual({.sizes = {.tensor = 2, .data = 2, .pipeline = 2}, .sequence = true, .tied = true});
  ExpectEqual({.sizes = {.tensor = 2, .data = 2, .pipeline = 2},
               .sequence = true,
               .per_token = false,
               .chunks = 2});
}

// All sizes of 1, 2, 4 on up to 8 ranks; what else there is drawn at random, the same in every run.
TEST(Layouts, AtRandom) {
  std::vector<Layout> all;
  for (const int64_t tensor : {1, 2, 4}) {
    for (const int64_t context : {1, 2, 4}) {
      for (const int64_t data : {1, 2, 4}) {
        for (const int64_t pipeline : {1, 2, 4}) {
          const parallel::ParallelSizes sizes = {tensor, context, data, pipeline};
          if (sizes.world() > 2 && sizes.world() <= 8) all.push_back({.sizes = sizes});
        }
      }
    }
  }
  std::mt19937 random(20);
  std::shuffle(all.begin(), all.end(), random);
  all.resize(6);
  for (Layout& layout : all) {
    const auto flip = [&] { return random() % 2 == 0; };
    layout.sequence = layout.sizes.tensor > 1 && flip();
    layout.tied = flip();
    layout.per_token = flip();
    layout.ring = flip();
    layout.distributed = flip();
    // Two stages of 8 layers have up to 4 chunks; 8 / 4 micro-batches at least divide by 2.
    if (layout.sizes.pipeline == 2 && flip()) layout.chunks = flip() ? 2 : 4;
    if (layout.sizes.pipeline == 4 && layout.sizes.data <= 2 && flip()) layout.chunks = 2;
    if (layout.sizes.pipeline > 1 && layout.chunks == 1 && flip()) {
      layout.last_layers = layout.sizes.pipeline == 2 ? 5 : 2;
    }
    ExpectEqual(layout);
  }
}

config::TrainConfig Fp8Config(const Layout& layout, config::Fp8Recipe recipe) {
  config::TrainConfig config = ConfigOf(layout);
  config.model.params_dtype = config::DType::kFp32;
  config.params_dtype = "fp32";
  config.model.fp8.recipe = recipe;
  config.model.fp8.amax_history_len = 16;
  config.model.fp8.amax_algo = config::AmaxAlgo::kMax;
  return config;
}

// A stage scales its own layers, in the order of micro-batches: a pipeline changes not a bit of it.
TEST(Fp8Layouts, PipelinesChangeNothing) {
  for (const config::Fp8Recipe recipe :
       {config::Fp8Recipe::kDelayed, config::Fp8Recipe::kTensorwise}) {
    const testing::Trajectory alone = testing::TrainOn({}, Fp8Config({}, recipe), 4);
    for (const Layout& layout : {Layout{.sizes = {.pipeline = 4}, .last_layers = 2},
                                 Layout{.sizes = {.pipeline = 2}, .chunks = 2},
                                 Layout{.sizes = {.pipeline = 2}, .last_layers = 0}}) {
      SCOPED_TRACE(Text(layout));
      const testing::Trajectory actual =
          testing::TrainOn(layout.sizes, Fp8Config(layout, recipe), 4);
      EXPECT_EQ(actual.losses.front(), alone.losses.front());
      for (size_t i = 0; i < alone.losses.size(); ++i) {
        // The norm, by which gradients are clipped, is summed in another order.
        EXPECT_NEAR(actual.losses[i], alone.losses[i], 1e-5 * alone.losses[i]);
      }
      ASSERT_EQ(actual.fp8.size(), alone.fp8.size());
    }
  }
}

// One iteration of one micro-batch: scales are still 1, and amaxes those of the same tensors, up to
// the order of sums in fp32 (and a bit of an FP8 value where such a sum lies on the border).
TEST(Fp8Layouts, AmaxesAreThoseOfWholeTensors) {
  const auto config_of = [](const Layout& layout) {
    config::TrainConfig config = Fp8Config(layout, config::Fp8Recipe::kDelayed);
    config.global_batch_size = 2;
    config.micro_batch_size = 2 / layout.sizes.data;
    return config;
  };
  const testing::Trajectory alone = testing::TrainOn({}, config_of({}), 1);
  for (const Layout& layout :
       {Layout{.sizes = {.tensor = 2}}, Layout{.sizes = {.tensor = 4}, .sequence = true},
        Layout{.sizes = {.data = 2}}, Layout{.sizes = {.context = 2}},
        Layout{.sizes = {.tensor = 2, .context = 2, .pipeline = 2}, .sequence = true}}) {
    SCOPED_TRACE(Text(layout));
    const testing::Trajectory actual = testing::TrainOn(layout.sizes, config_of(layout), 1);
    ASSERT_EQ(actual.fp8.size(), alone.fp8.size());
    for (const auto& [name, expected] : alone.fp8) {
      const at::Tensor error =
          actual.fp8.at(name).sub(expected).abs().div(expected.abs().add(1e-9));
      EXPECT_LE(error.max().item<double>(), 0.05) << name;
    }
  }
}

}  // namespace
}  // namespace muster
