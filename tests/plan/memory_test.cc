#include "controller/plan/memory.h"

#include <gtest/gtest.h>

#include "controller/plan/layer_split.h"
#include "model_testing.h"

// Memory parts against the budget of the 8B on one GPU that was worked out by hand and partly
// measured: sequences of 8192, micro-batch 1. Figures there have three digits, so half of the last
// one is the tolerance.

namespace muster::plan {
namespace {

constexpr double kGB = 1e9;
constexpr double kMiB = 1024.0 * 1024.0;
constexpr double kGiB = 1024.0 * kMiB;

MemoryParts OneGpu(const ModelShape& model) {
  LayerSplit split;
  EXPECT_FALSE(SplitLayers(model, 1, 1, &split).has_value());
  return StageMemory(model, SomeSizes(1, 1, 1, 1, 1, 16), split, 0);
}

double States(const MemoryParts& m) {
  return m.weights + m.fp8_copies + m.gradients + m.optimizer;
}

ModelShape With(double grad, double moments, double master = 4) {
  ModelShape m = Llama8b();
  m.grad_bytes = grad;
  m.exp_avg_bytes = m.exp_avg_sq_bytes = moments;
  m.master_bytes = master;
  return m;
}

TEST(Memory, ParametersOfTheModels) {
  EXPECT_NEAR(static_cast<double>(Llama8b().Parameters()) / 1e9, 8.030, 0.0005);
  EXPECT_EQ(Llama8b().LayerParameters() * 32, 6'979'321'856ULL);
  EXPECT_EQ(Llama8b().PaddedVocab(2), 128256U);
  EXPECT_EQ(Llama8b().PaddedVocab(4), 128512U);
  EXPECT_EQ(Llama8b().PaddedVocab(8), 129024U);
}

// Options A to E: optimizer and gradient precision.
TEST(Memory, StatesOfTheFiveOptions) {
  EXPECT_NEAR(States(OneGpu(With(4, 4))) / kGB, 144.5, 0.06);
  EXPECT_NEAR(States(OneGpu(With(4, 4))) / kGiB, 134.6, 0.06);
  EXPECT_NEAR(States(OneGpu(With(4, 2))) / kGB, 112.4, 0.06);
  EXPECT_NEAR(States(OneGpu(With(4, 2))) / kGiB, 104.7, 0.06);
  EXPECT_NEAR(States(OneGpu(With(2, 2))) / kGB, 96.4, 0.06);
  EXPECT_NEAR(States(OneGpu(With(2, 2))) / kGiB, 89.8, 0.06);
  EXPECT_NEAR(States(OneGpu(With(2, 4))) / kGB, 128.5, 0.06);
  EXPECT_NEAR(States(OneGpu(With(2, 4))) / kGiB, 119.7, 0.06);
  EXPECT_NEAR(States(OneGpu(With(2, 2, 2))) / kGB, 80.3, 0.06);
  EXPECT_NEAR(States(OneGpu(With(2, 2, 2))) / kGiB, 74.8, 0.06);
}

TEST(Memory, PartsOfTheStates) {
  const MemoryParts m = OneGpu(With(4, 2));
  EXPECT_NEAR((m.weights - 2.1 * kGB + m.fp8_copies) / kGB, 13.96, 0.01);  // linear layers, twice
  EXPECT_NEAR(m.fp8_copies / kGB, 6.98, 0.005);
  EXPECT_NEAR(m.gradients / kGB, 32.1, 0.05);
  EXPECT_NEAR(m.optimizer / kGB, 64.2, 0.06);  // fp32 master, bf16 moments
}

TEST(Memory, ActivationsOfALayer) {
  const Sizes sizes = SomeSizes(1, 1, 1, 1, 1, 16);
  EXPECT_NEAR(LayerActivationBytes(Llama8b(), sizes) / kMiB, 945, 0.1);
  EXPECT_EQ(LayerActivationBytes(Llama8b(), sizes) / 8192, 120'968);  // a token
  EXPECT_NEAR(OneGpu(Llama8b()).activations / kGiB, 29.5, 0.05);
}

TEST(Memory, Recomputation) {
  ModelShape m = Llama8b();
  m.recompute.activation = true;
  EXPECT_NEAR(OneGpu(m).activations / kGiB, 26.0, 0.05);
  m.recompute.norms = m.recompute.attention_cast = true;
  EXPECT_NEAR(OneGpu(m).activations / kGiB, 23.0, 0.05);
  m.recompute = Recompute{};
  m.recompute.full = true;  // inputs of all layers, and one whole layer at a time
  EXPECT_NEAR(OneGpu(m).activations / kMiB, 32 * 64 + 945, 0.1);
  m.recompute.full_layers = 8;
  EXPECT_NEAR(OneGpu(m).activations / kMiB, 8 * 64 + 24 * 945 + 945, 3);
}

TEST(Memory, LogitsAndTotal) {
  const MemoryParts a = OneGpu(With(4, 4));
  EXPECT_NEAR(a.logits / kGiB, 1.96, 0.005);
  EXPECT_NEAR((States(a) + a.activations) / kGiB, 164, 0.5);
  const MemoryParts b = OneGpu(With(4, 2));
  EXPECT_NEAR((States(b) + b.activations) / kGiB, 134, 0.5);
  EXPECT_NEAR((States(b) + b.activations + b.logits) / kGiB, 136, 0.5);
  EXPECT_DOUBLE_EQ(b.Total(), States(b) + b.activations + b.logits + b.workspaces);
}

// The recipe on eight GPUs: the optimizer is shared by all.
TEST(Memory, DistributedOptimizer) {
  ModelShape m = With(2, 4);
  m.distributed_optimizer = true;
  LayerSplit split;
  SplitLayers(m, 1, 1, &split);
  const MemoryParts parts = StageMemory(m, SomeSizes(1, 1, 1, 8, 1, 16), split, 0);
  EXPECT_NEAR(parts.optimizer / kGB, 12.0, 0.06);
  EXPECT_NEAR(parts.gradients / kGB, 16.1, 0.05);
  // CP ranks share it too.
  EXPECT_DOUBLE_EQ(StageMemory(m, SomeSizes(1, 1, 2, 4, 1, 16), split, 0).optimizer,
                   parts.optimizer);
}

TEST(Memory, TensorAndSequenceParallel) {
  ModelShape m = Llama8b();
  const double whole = LayerActivationBytes(m, SomeSizes(1, 1, 1, 1, 1, 1));
  m.sequence_parallel = true;
  EXPECT_DOUBLE_EQ(LayerActivationBytes(m, SomeSizes(4, 1, 1, 1, 1, 1)), whole / 4);
  m.sequence_parallel = false;  // residuals, statistics and the two inputs stay whole: 192 MiB
  const double outside = (128 + 32 + 32) * kMiB + 8.0 * 8192;
  EXPECT_DOUBLE_EQ(LayerActivationBytes(m, SomeSizes(4, 1, 1, 1, 1, 1)),
                   outside + (whole - outside) / 4);
  EXPECT_DOUBLE_EQ(LayerActivationBytes(m, SomeSizes(1, 1, 2, 1, 1, 1)), whole / 2);
  EXPECT_DOUBLE_EQ(LayerActivationBytes(m, SomeSizes(1, 1, 1, 1, 2, 1)), whole * 2);
}

// 1F1B: stage p keeps PP - p micro-batches; interleaved: Megatron's warm-up count and one more.
TEST(Memory, MicrobatchesInFlight) {
  EXPECT_EQ(MicrobatchesInFlight(SomeSizes(1, 4, 1, 1, 1, 16), 0), 4);
  EXPECT_EQ(MicrobatchesInFlight(SomeSizes(1, 4, 1, 1, 1, 16), 3), 1);
  EXPECT_EQ(MicrobatchesInFlight(SomeSizes(1, 4, 1, 1, 1, 2), 0), 2);
  EXPECT_EQ(MicrobatchesInFlight(SomeSizes(1, 4, 1, 1, 1, 16, 2), 0), (6 + 4 + 1) / 2.0);
  EXPECT_EQ(MicrobatchesInFlight(SomeSizes(1, 4, 1, 1, 1, 16, 2), 3), (4 + 1) / 2.0);
  EXPECT_EQ(MicrobatchesInFlight(SomeSizes(1, 4, 1, 1, 1, 4, 4), 0), 4);
}

TEST(Memory, EmbeddingAndHeadAreOnTheEnds) {
  ModelShape m = Llama8b();
  const Sizes sizes = SomeSizes(1, 4, 1, 1, 1, 16);
  LayerSplit split;
  SplitLayers(m, 4, 1, &split);
  const double table = 128256.0 * 4096;
  EXPECT_EQ(ParametersOf(m, sizes, split, 0).tables, table);
  EXPECT_EQ(ParametersOf(m, sizes, split, 1).tables, 0);
  EXPECT_EQ(ParametersOf(m, sizes, split, 3).tables, table);
  double sum = 0;
  for (uint32_t stage = 0; stage < 4; ++stage) {
    sum += ParametersOf(m, sizes, split, stage).Total();
    EXPECT_EQ(StageMemory(m, sizes, split, stage).logits > 0, stage == 3);
  }
  EXPECT_EQ(sum, static_cast<double>(m.Parameters()));
  m.tied = true;  // the last stage has a copy; one stage has one table
  EXPECT_EQ(ParametersOf(m, sizes, split, 3).tables, table);
  LayerSplit one;
  SplitLayers(m, 1, 1, &one);
  EXPECT_EQ(ParametersOf(m, SomeSizes(1, 1, 1, 1, 1, 1), one, 0).tables, table);
}

}  // namespace
}  // namespace muster::plan
