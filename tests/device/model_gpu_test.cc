#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "tests/device/host_ops.h"
#include "tests/device/training.h"
#include "tests/kernels/gpu_testing.h"
#include "trainer/device/cuda_ops.h"

namespace muster::device {
namespace {

std::unique_ptr<Ops> Gpu(bool deterministic = false, bool graphs = true) {
  CudaOptions options;
  options.deterministic = deterministic;
  options.graphs = graphs;
  options.gemm_candidates = 1;
  return MakeCudaOps(options);
}

class GpuModelTest : public testing::TestWithParam<TrainingCase> {};

TEST_P(GpuModelTest, TrainsAsTheReferenceDoes) {
  const config::ModelConfig config = SmallModel(GetParam());
  ExpectAsGood(GetParam(), TrainPlanned(config, Gpu(), {}));
}

TEST_P(GpuModelTest, TrainsAsTheReferenceDoesWithBf16State) {
  const config::ModelConfig config = SmallModel(GetParam());
  const Trace gpu = TrainPlanned(config, Gpu(), {true, true});
  const Trace host = TrainPlanned(config, MakeHostOps(), {true, true});
  for (size_t step = 0; step < gpu.losses.size(); ++step) {
    EXPECT_NEAR(gpu.losses[step], host.losses[step], 0.01 * host.losses[step]);
    EXPECT_NEAR(gpu.norms[step], host.norms[step], 0.1 * host.norms[step]);
  }
}

TEST_P(GpuModelTest, GivesTheSameBitsEachTime) {
  const config::ModelConfig config = SmallModel(GetParam());
  const Trace first = TrainPlanned(config, Gpu(true), {});
  const Trace second = TrainPlanned(config, Gpu(true), {});
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_EQ(first.norms, second.norms);
  EXPECT_TRUE(first.weights.equal(second.weights));
}

TEST_P(GpuModelTest, GraphsGiveTheBitsOfEagerRuns) {
  const config::ModelConfig config = SmallModel(GetParam());
  const Trace graphs = TrainPlanned(config, Gpu(true, true), {});
  const Trace eager = TrainPlanned(config, Gpu(true, false), {});
  EXPECT_EQ(graphs.losses, eager.losses);
  EXPECT_EQ(graphs.norms, eager.norms);
  EXPECT_TRUE(graphs.weights.equal(eager.weights));
}

TEST_P(GpuModelTest, WhatIsMadeAgainHasTheSameBits) {
  const config::ModelConfig config = SmallModel(GetParam());
  const Trace kept = TrainPlanned(config, Gpu(true), {});
  for (const Recompute& recompute : {Recompute{2}, Recompute{1, true}}) {
    const Trace again = TrainPlanned(config, Gpu(true), {}, recompute);
    EXPECT_EQ(again.losses, kept.losses);
    EXPECT_EQ(again.norms, kept.norms);
    EXPECT_TRUE(again.weights.equal(kept.weights));
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GpuModelTest, testing::ValuesIn(kTrainingCases),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace muster::device

int main(int argc, char** argv) {
  return muster::RunGpuTests(argc, argv);
}
