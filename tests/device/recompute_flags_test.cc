#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/device/host_ops.h"
#include "tests/device/training.h"
#include "trainer/config/error.h"
#include "trainer/engine/device_engine.h"

// Megatron's --recompute flags with --device cuda: what they choose, and what is refused by name.

namespace muster::engine {
namespace {

using config::TrainConfig;
using testing::HasSubstr;

// Empty when the engine takes the flags.
std::string Refusal(const std::function<void(TrainConfig&)>& set) {
  TrainConfig config;
  config.model = device::SmallModel(device::kTrainingCases[0]);
  config.micro_batch_size = 1;
  set(config);
  try {
    MakeDeviceEngine(config, device::MakeHostOps(), parallel::SingleRankGroups(), {});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(RecomputeFlagsTest, TakesFullByBlockAndUniform) {
  EXPECT_EQ(Refusal([](TrainConfig& c) { c.recompute_granularity = "full"; }), "");
  EXPECT_EQ(Refusal([](TrainConfig& c) {
              c.recompute_granularity = "full";
              c.recompute_method = "block";
              c.recompute_num_layers = 99;  // more than there are
            }),
            "");
  EXPECT_EQ(Refusal([](TrainConfig& c) {
              c.recompute_granularity = "selective";
              c.recompute_modules = {"core_attn", "mlp_act"};
            }),
            "");
}

TEST(RecomputeFlagsTest, RefusesByNameWhatItDoesNotDo) {
  EXPECT_THAT(Refusal([](TrainConfig& c) {
                c.recompute_modules = {"core_attn", "mlp"};
              }),
              HasSubstr("--recompute-modules mlp"));
  EXPECT_THAT(Refusal([](TrainConfig& c) { c.recompute_modules = {"mlp_act"}; }),
              HasSubstr("mlp_act needs --recompute-granularity selective"));
  EXPECT_THAT(Refusal([](TrainConfig& c) { c.recompute_num_layers = 2; }),
              HasSubstr("--recompute-num-layers needs --recompute-granularity full"));
  EXPECT_THAT(Refusal([](TrainConfig& c) { c.recompute_method = "block"; }),
              HasSubstr("--recompute-method needs --recompute-granularity full"));
  EXPECT_THAT(Refusal([](TrainConfig& c) {
                c.recompute_granularity = "full";
                c.recompute_method = "block";
              }),
              HasSubstr("--recompute-method block needs --recompute-num-layers"));
  EXPECT_THAT(Refusal([](TrainConfig& c) {
                c.recompute_granularity = "full";
                c.recompute_num_layers = 3;
              }),
              HasSubstr("--recompute-num-layers 3"));
}

}  // namespace
}  // namespace muster::engine
