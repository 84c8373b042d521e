#include "trainer/parallel/schedule.h"

#include <algorithm>

namespace muster::parallel {

int64_t WarmUpSteps(const PipelineShape& shape, int64_t stage) {
  const int64_t after = shape.stages - 1 - stage;  // stages behind this one
  const int64_t group = shape.group > 0 ? shape.group : shape.stages;
  const int64_t steps = shape.chunks == 1 ? after : 2 * after + (shape.chunks - 1) * group;
  return std::min(steps, shape.micro_batches * shape.chunks);
}

std::vector<Step> ForwardSchedule(const PipelineShape& shape) {
  const int64_t group =
      shape.chunks == 1 ? shape.micro_batches : (shape.group > 0 ? shape.group : shape.stages);
  std::vector<Step> steps;
  for (int64_t first = 0; first < shape.micro_batches; first += group) {
    const int64_t end = std::min(first + group, shape.micro_batches);
    for (int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
      for (int64_t micro_batch = first; micro_batch < end; ++micro_batch) {
        steps.push_back({true, chunk, micro_batch});
      }
    }
  }
  return steps;
}

std::vector<Step> PipelineSchedule(const PipelineShape& shape, int64_t stage) {
  const std::vector<Step> forwards = ForwardSchedule(shape);
  // Backwards take the same turns, from the last chunk to the first.
  std::vector<Step> backwards = forwards;
  for (Step& step : backwards) step = {false, shape.chunks - 1 - step.chunk, step.micro_batch};
  const auto warm_up = static_cast<size_t>(WarmUpSteps(shape, stage));
  std::vector<Step> steps(forwards.begin(), forwards.begin() + static_cast<int64_t>(warm_up));
  for (size_t i = 0; i < backwards.size(); ++i) {
    if (warm_up + i < forwards.size()) steps.push_back(forwards[warm_up + i]);
    steps.push_back(backwards[i]);
  }
  return steps;
}

}  // namespace muster::parallel
