#include "trainer/loop/evaluate.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "trainer/loop/micro_batches.h"

namespace muster::loop {

double Evaluate(Run& run, const data::SampleSource& source, int64_t consumed) {
  const at::Tensor sums = at::empty({2}, at::kDouble);
  double* values = sums.data_ptr<double>();
  values[0] = values[1] = 0;
  for (int64_t i = 0; i < run.config().eval_iters; ++i) {
    const engine::Sums batch = run.engine->Evaluate(
        MicroBatchesOf(run, source, consumed + i * run.config().global_batch_size));
    if (!run.groups.CountsLoss()) continue;
    values[0] += batch.loss;
    values[1] += batch.tokens;
  }
  run.groups.world->AllReduce(sums, parallel::ReduceOp::kSum);
  return values[0] / std::max(values[1], 1.0);
}

}  // namespace muster::loop
