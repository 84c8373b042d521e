#pragma once

#include <cstdint>

#include "controller/plan/constants.h"
#include "controller/plan/layer_split.h"
#include "controller/plan/model_shape.h"
#include "controller/plan/sizes.h"

// How long a step takes: an analytic model of Megatron's schedules. It is there to put layouts in
// order and to show what they wait for, not to promise a figure; formulas and its errors against
// published runs are in docs/planning.md. Pure.

namespace muster::plan {

// Bytes that one rank sends in a step, by group.
struct CommVolume {
  double tp = 0;
  double cp = 0;
  double pp = 0;
  double dp = 0;
  double between_hosts = 0;  // the part of them in groups that cross hosts

  double Total() const { return tp + cp + pp + dp; }
};

// Seconds of one step on the slowest stage.
struct StepTime {
  double compute = 0;  // products, attention, head, fused passes
  double tp = 0;       // communication that compute waits for
  double cp = 0;
  double pp = 0;
  double bubble = 0;
  double dp = 0;
  double optimizer = 0;

  double Total() const { return compute + tp + cp + pp + bubble + dp + optimizer; }
};

struct Performance {
  StepTime step;
  CommVolume volume;
  double tokens_per_second = 0;  // of all ranks
  double tokens_per_second_per_rank = 0;
  double tflops_per_rank = 0;  // Megatron's count, causal attention at half
};

// The share of a step in which stages wait for others, if all stages take equally long:
// (PP - 1) / (VP x micro-batches + PP - 1).
double BubbleFraction(const Sizes& sizes);

// Floating-point operations for a token, forward and backward, as Megatron counts them.
double FlopsPerToken(const ModelShape& model);

// `ranks_per_host`: of the smallest host. The model's vocabulary and the batch are known.
Performance Predict(const ModelShape& model, const Sizes& sizes, const LayerSplit& split,
                    uint32_t ranks_per_host, const Constants& constants);

}  // namespace muster::plan
