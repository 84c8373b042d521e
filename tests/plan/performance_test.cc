#include "controller/plan/performance.h"

#include <gtest/gtest.h>

#include "model_testing.h"

namespace muster::plan {
namespace {

Performance Of(const ModelShape& m, const Sizes& s, uint32_t per_host = 8,
               const Constants& c = DefaultConstants()) {
  LayerSplit split;
  EXPECT_FALSE(SplitLayers(m, s.pp, s.vp, &split).has_value());
  return Predict(m, s, split, per_host, c);
}

TEST(Bubble, Fractions) {
  EXPECT_EQ(BubbleFraction(SomeSizes(1, 1, 1, 8, 1, 16)), 0);
  EXPECT_DOUBLE_EQ(BubbleFraction(SomeSizes(1, 2, 1, 8, 1, 128)), 1.0 / 129);
  EXPECT_DOUBLE_EQ(BubbleFraction(SomeSizes(4, 8, 1, 2, 1, 64, 5)), 7.0 / (5 * 64 + 7));
}

// Megatron's count for the 8B at 8192: 51.47 GFLOP a token.
TEST(Flops, PerToken) {
  EXPECT_NEAR(FlopsPerToken(Llama8b()) / 1e9, 51.4704, 0.0001);
}

// Without communication, bubble and waste a step is products, attention and head at their rates.
TEST(Predict, OneRankIsTheSumOfItsParts) {
  Constants c = DefaultConstants();
  c.memory_gb_s = c.optimizer_gb_s = 1e9;
  c.idle_fraction = 0;
  const Sizes s = SomeSizes(1, 1, 1, 1, 1, 16);
  const Performance p = Of(Llama8b(), s, 1, c);
  const double tokens = 16 * 8192.0;
  const double linear = 6 * 6.979321856e9 / (c.fp8_tflops * 1e12);
  const double attention = 6.0 * 32 * 4096 * 8192 / (c.attention_tflops * 1e12);
  const double head = 6 * 128256.0 * 4096 / (c.bf16_tflops * 1e12);
  const double expected = tokens * (linear + attention + head);
  // The two rates above are not infinite: 428 KiB a token and layer at 1e18 B/s.
  EXPECT_NEAR(p.step.Total(), expected, 1e-6 * expected);
  EXPECT_EQ(p.step.tp + p.step.cp + p.step.pp + p.step.dp + p.step.bubble, 0);
  EXPECT_EQ(p.volume.Total(), 0);
  EXPECT_NEAR(p.tokens_per_second, tokens / p.step.Total(), 1e-6);
}

TEST(Predict, VolumesByHand) {
  ModelShape m = Llama8b();
  m.distributed_optimizer = true;
  // Data parallel over 8: 7/8 of fp32 gradients, then of FP8 and bf16 weights.
  const double tables = 2 * 128256.0 * 4096;
  const double norms = 65.0 * 4096;
  const double linear = 6.979321856e9;
  EXPECT_NEAR(Of(m, SomeSizes(1, 1, 1, 8, 1, 16)).volume.dp,
              7.0 / 8 * (4 * (tables + norms + linear) + 2 * (tables + norms) + linear), 1);
  // Sequence parallel over 2: ten pieces of half an activation, each layer and micro-batch.
  m.sequence_parallel = true;
  EXPECT_NEAR(Of(m, SomeSizes(2, 1, 1, 1, 1, 3)).volume.tp, 3 * 32 * 10 * 0.5 * 2 * 8192.0 * 4096,
              1);
  // Pipeline of 2: an activation forward and a gradient back, each micro-batch.
  EXPECT_NEAR(Of(m, SomeSizes(1, 2, 1, 1, 1, 3)).volume.pp, 3 * 2 * 2 * 8192.0 * 4096, 1);
  // Context over 2: keys and values of half the sequence to one neighbour, three times.
  EXPECT_NEAR(Of(m, SomeSizes(1, 1, 2, 1, 1, 3)).volume.cp, 3 * 32 * 3 * 2 * 4096.0 * 2048, 1);
}

TEST(Predict, GroupsThatCrossHostsAreCountedAndSlower) {
  const ModelShape m = Llama8b();
  const Sizes s = SomeSizes(4, 1, 1, 1, 1, 16);
  const Performance inside = Of(m, s, 4);
  const Performance across = Of(m, s, 2);
  EXPECT_EQ(inside.volume.between_hosts, 0);
  EXPECT_EQ(across.volume.between_hosts, across.volume.tp);
  EXPECT_GT(across.step.tp, inside.step.tp);
}

TEST(Predict, OverlapHidesReduction) {
  ModelShape m = Llama8b();
  m.distributed_optimizer = true;
  const Sizes s = SomeSizes(1, 1, 1, 16, 1, 8);
  const Performance open = Of(m, s);
  m.overlap_grad_reduce = m.overlap_param_gather = true;
  const Performance hidden = Of(m, s);
  EXPECT_LT(hidden.step.dp, open.step.dp);
  EXPECT_EQ(hidden.volume.dp, open.volume.dp);
}

TEST(Predict, VirtualStagesShortenTheBubble) {
  const ModelShape m = Llama8b();
  const Performance plain = Of(m, SomeSizes(1, 4, 1, 2, 1, 16));
  const Performance interleaved = Of(m, SomeSizes(1, 4, 1, 2, 1, 16, 4));
  EXPECT_DOUBLE_EQ(plain.step.bubble, 4 * interleaved.step.bubble);
  EXPECT_DOUBLE_EQ(interleaved.volume.pp, 4 * plain.volume.pp);
}

}  // namespace
}  // namespace muster::plan
