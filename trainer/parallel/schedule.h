#pragma once

#include <cstdint>
#include <vector>

// The order in which a pipeline stage computes: Megatron's 1F1B, interleaved where a stage has
// several chunks of the model. Pure.

namespace muster::parallel {

struct PipelineShape {
  int64_t stages = 1;
  int64_t chunks = 1;  // of each stage: virtual stages; more than one needs stages > 1
  int64_t micro_batches = 1;
  // Interleaved: how many micro-batches a chunk takes in turn; 0: as many as there are stages. At
  // least that many, and so many at least in the last, incomplete turn.
  int64_t group = 0;
};

// Forward or backward of one micro-batch through one of the stage's chunks.
struct Step {
  bool forward = true;
  int64_t chunk = 0;
  int64_t micro_batch = 0;

  friend bool operator==(const Step&, const Step&) = default;
};

// Forwards before the first backward, but for the one that comes with it.
int64_t WarmUpSteps(const PipelineShape& shape, int64_t stage);

// What `stage` does, in order: warm-up, then a forward and a backward in turn, then the backwards
// that are left.
std::vector<Step> PipelineSchedule(const PipelineShape& shape, int64_t stage);

// Forwards alone, for evaluation.
std::vector<Step> ForwardSchedule(const PipelineShape& shape);

}  // namespace muster::parallel
