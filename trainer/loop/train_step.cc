#include "trainer/loop/train_step.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "trainer/config/error.h"
#include "trainer/data/batch_loader.h"
#include "trainer/optim/gradients.h"

namespace muster::loop {
namespace {

// Without --calculate-per-token-loss every micro-batch counts alike: its gradient is divided by its
// own tokens. The model adds gradients of SUMS to the buffer, so the buffer holds the mean so far
// times the tokens of the latest micro-batch. Micro-batches of equal token counts, the usual case,
// cost nothing.
class MicroBatchMean {
 public:
  explicit MicroBatchMean(engine::Engine* engine) : engine_(engine) {}

  // Before the backward of a micro-batch with this many tokens.
  void Before(double tokens) {
    const double next = std::max(tokens, 1.0);
    if (scale_ != 0 && scale_ != next) engine_->ScaleGradients(next / scale_);
    scale_ = next;
  }
  void Finish(int64_t micro_batches) {
    engine_->ScaleGradients(1.0 / (scale_ * static_cast<double>(micro_batches)));
  }

 private:
  engine::Engine* engine_;
  double scale_ = 0;
};

engine::Sums RunMicroBatches(Run& run, int64_t consumed) {
  const bool per_token = run.config().calculate_per_token_loss;
  MicroBatchMean mean(run.engine.get());
  run.engine->BeginIteration();
  for (int64_t k = 0; k < run.sizes.num_microbatches; ++k) {
    const data::Batch batch = data::LoadMicroBatch(*run.data.train, run.shard, consumed, k);
    if (!per_token) mean.Before(batch.loss_mask_BS.sum().item<double>());
    run.engine->ForwardBackward(batch);
  }
  if (!per_token) mean.Finish(run.sizes.num_microbatches * run.sizes.data_parallel_size);
  return run.engine->TakeSums();
}

// One small message for all that ranks must agree on.
struct Agreed {
  double loss;
  double tokens;
  Votes votes;
};

Agreed Agree(Run& run, const engine::Sums& sums, const Votes& votes) {
  const at::Tensor message = at::empty({4}, at::kDouble);
  double* values = message.data_ptr<double>();
  values[0] = sums.loss;
  values[1] = sums.tokens;
  values[2] = votes.terminate ? 1 : 0;
  values[3] = votes.overtime ? 1 : 0;
  run.data_parallel->AllReduce(message, parallel::ReduceOp::kSum);
  return {values[0], values[1], {values[2] > 0, values[3] > 0}};
}

[[noreturn]] void ThrowNan(Run& run, int64_t iteration, const IterationResult& result) {
  if (!std::isfinite(result.lm_loss)) {
    throw NanError(fmt::format("iteration {}: lm loss is {}; this rank's own is {}", iteration,
                               result.lm_loss, result.local_loss));
  }
  if (const std::string name = run.engine->NonFiniteGradient(); !name.empty()) {
    throw NanError(fmt::format("iteration {}: gradient norm is {} (lm loss {}); first in {}",
                               iteration, result.grad_norm, result.lm_loss, name));
  }
  throw NanError(fmt::format("iteration {}: gradient norm is {} (lm loss {})", iteration,
                             result.grad_norm, result.lm_loss));
}

}  // namespace

IterationResult TrainIteration(Run& run, int64_t iteration, int64_t consumed, const Votes& mine) {
  const config::TrainConfig& config = run.config();
  const engine::Sums sums = RunMicroBatches(run, consumed);
  const Agreed agreed = Agree(run, sums, mine);
  run.engine->AllReduceGradients(*run.data_parallel);

  IterationResult result;
  result.lm_loss = agreed.loss / std::max(agreed.tokens, 1.0);
  result.tokens = agreed.tokens;
  result.local_loss = sums.loss / std::max(sums.tokens, 1.0);
  result.votes = agreed.votes;
  result.grad_norm = run.engine->Normalize(config.calculate_per_token_loss ? agreed.tokens : 1);
  const bool finite = std::isfinite(result.lm_loss) && std::isfinite(result.grad_norm);
  if (!finite && !config.no_check_for_nan) ThrowNan(run, iteration, result);

  result.clip_coefficient = optim::ClipCoefficient(result.grad_norm, config.clip_grad);
  result.learning_rate = run.lr.At(consumed);
  run.engine->Step({result.learning_rate, run.decoupled_lr.At(consumed)}, result.clip_coefficient);
  return result;
}

}  // namespace muster::loop
