#include <gtest/gtest.h>

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <stdexcept>

#include "tests/device/host_ops.h"
#include "tests/device/training.h"

namespace muster::device {
namespace {

class PlannedModelTest : public testing::TestWithParam<TrainingCase> {};

TEST_P(PlannedModelTest, TrainsAsTheReferenceDoes) {
  ExpectAsGood(GetParam(), TrainPlanned(SmallModel(GetParam()), MakeHostOps(), {}));
}

INSTANTIATE_TEST_SUITE_P(Cases, PlannedModelTest, testing::ValuesIn(kTrainingCases),
                         [](const auto& test) { return test.param.name; });

// bf16 moments and gradients change the steps by no more than FP8 itself does.
TEST_P(PlannedModelTest, TrainsWithBf16State) {
  if (GetParam().recipe == config::Fp8Recipe::kNone) return;  // gradients stay fp32 there
  const config::ModelConfig config = SmallModel(GetParam());
  const Trace bf16 = TrainPlanned(config, MakeHostOps(), {true, true});
  ExpectAsGood(GetParam(), bf16);
}

TEST_P(PlannedModelTest, WhatIsMadeAgainHasTheSameBits) {
  const config::ModelConfig config = SmallModel(GetParam());
  const Trace kept = TrainPlanned(config, MakeHostOps(), {});
  for (const Recompute& recompute : {Recompute{2}, Recompute{3}, Recompute{1, true}}) {
    const Trace again = TrainPlanned(config, MakeHostOps(), {}, recompute);
    EXPECT_EQ(again.losses, kept.losses);
    EXPECT_TRUE(again.weights.equal(kept.weights));
    EXPECT_EQ(again.held_out, kept.held_out);
  }
}

TEST(PlannedModelTest, RecomputedLayersKeepTheirInputAlone) {
  config::ModelConfig config = SmallModel(kTrainingCases[2]);
  config.num_layers = 8;
  const auto bytes = [&](int64_t layers) {
    const Shape shape{.model = config, .batch = 4, .recomputed_layers = layers};
    return Model(MakeHostOps(), shape, {}, nullptr).memory_bytes();
  };
  // A layer keeps, besides, at least its gates in bf16; what all recomputed ones share is there
  // once.
  const int64_t gates = 4 * 64 * 2 * 320 * 2;
  EXPECT_LT(bytes(7), bytes(0) - 5 * gates);
}

TEST(PlannedModelTest, SwigluIsKeptUnlessMadeAgain) {
  const config::ModelConfig config = SmallModel(kTrainingCases[2]);
  const auto bytes = [&](bool recompute) {
    const Shape shape{.model = config, .batch = 4, .recompute_swiglu = recompute};
    return Model(MakeHostOps(), shape, {}, nullptr).memory_bytes();
  };
  const int64_t outputs = 3 * 4 * 64 * 320;  // in FP8
  EXPECT_EQ(bytes(false), bytes(true) + outputs);
}

TEST(PlannedModelTest, RefusesTokensOutsideTheVocabulary) {
  const config::ModelConfig config = SmallModel(kTrainingCases[0]);
  Model model(MakeHostOps(), {.model = config, .batch = 1}, {}, nullptr);
  data::Batch batch{at::zeros({1, 64}, at::kLong), at::zeros({1, 64}, at::kLong),
                    at::ones({1, 64}, at::kFloat)};
  batch.tokens_BS[0][5] = 512;
  EXPECT_THROW(model.ForwardBackward(batch), std::out_of_range);
  batch.tokens_BS[0][5] = 0;
  batch.labels_BS[0][6] = -1;
  EXPECT_THROW(model.ForwardBackward(batch), std::out_of_range);
  batch.loss_mask_BS[0][6] = 0;
  EXPECT_NO_THROW(model.ForwardBackward(batch));
}

TEST(PlannedModelTest, RefusesSizesThatTheDeviceCantDo) {
  config::ModelConfig config = SmallModel(kTrainingCases[0]);
  config.kv_channels = 24;
  EXPECT_THROW(Model(MakeHostOps(), {.model = config, .batch = 1}, {}, nullptr),
               std::invalid_argument);
}

}  // namespace
}  // namespace muster::device
