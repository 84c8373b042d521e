#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trainer/fp8/cuda/gemm_plan.h"

// Chooses a product's algorithm by timing it on operands like real ones: normal numbers, scaled to
// the FP8 formats' ranges.

namespace muster::fp8::cuda {

// Device memory that timing takes: the operands, the result, and the workspace.
int64_t TuningBytes(const GemmSpec& spec);

struct Tuned {
  GemmAlgorithm algorithm;
  double microseconds;
  double first_choice_microseconds;  // of what cuBLAS would have taken
};

// Times `candidates` algorithms, then the best few again, in turns. `scratch` has
// TuningBytes(plan.spec()); waits for the stream. The plan itself keeps its algorithm.
Tuned Tune(const GemmPlan& plan, int candidates, std::span<std::byte> scratch, cudaStream_t stream);

}  // namespace muster::fp8::cuda
