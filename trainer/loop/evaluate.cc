#include "trainer/loop/evaluate.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "trainer/data/batch_loader.h"

namespace muster::loop {

double Evaluate(Run& run, const data::SampleSource& source, int64_t consumed) {
  const at::Tensor sums = at::empty({2}, at::kDouble);
  double* values = sums.data_ptr<double>();
  values[0] = values[1] = 0;
  const int64_t micro_batches = run.config().eval_iters * run.sizes.num_microbatches;
  for (int64_t k = 0; k < micro_batches; ++k) {
    const engine::Sums batch =
        run.engine->Evaluate(data::LoadMicroBatch(source, run.shard, consumed, k));
    values[0] += batch.loss;
    values[1] += batch.tokens;
  }
  run.data_parallel->AllReduce(sums, parallel::ReduceOp::kSum);
  return values[0] / std::max(values[1], 1.0);
}

}  // namespace muster::loop
