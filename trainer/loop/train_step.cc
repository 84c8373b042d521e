#include "trainer/loop/train_step.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "trainer/config/error.h"
#include "trainer/data/batch_loader.h"
#include "trainer/optim/gradients.h"

namespace muster::loop {
namespace {

struct LocalSums {
  double loss = 0;
  double tokens = 0;
};

// Without --calculate-per-token-loss every micro-batch counts alike: its gradient is divided by its
// own tokens. The model adds gradients of SUMS to the buffer, so the buffer holds the mean so far
// times the tokens of the latest micro-batch. Micro-batches of equal token counts, the usual case,
// cost nothing.
class MicroBatchMean {
 public:
  explicit MicroBatchMean(at::Tensor gradients) : gradients_(std::move(gradients)) {}

  // Before the backward of a micro-batch with this many tokens.
  void Before(double tokens) {
    const double next = std::max(tokens, 1.0);
    if (scale_ != 0 && scale_ != next) gradients_.mul_(next / scale_);
    scale_ = next;
  }
  void Finish(int64_t micro_batches) {
    gradients_.mul_(1.0 / (scale_ * static_cast<double>(micro_batches)));
  }

 private:
  at::Tensor gradients_;
  double scale_ = 0;
};

LocalSums RunMicroBatches(Run& run, int64_t consumed, at::Tensor gradients) {
  const bool per_token = run.config().calculate_per_token_loss;
  MicroBatchMean mean(gradients);
  LocalSums sums;
  run.model->BeginIteration();
  for (int64_t k = 0; k < run.sizes.num_microbatches; ++k) {
    const data::Batch batch = data::LoadMicroBatch(*run.data.train, run.shard, consumed, k);
    if (!per_token) mean.Before(batch.loss_mask_BS.sum().item<double>());
    const model::LossSum sum = run.model->ForwardBackward(batch);
    sums.loss += sum.loss.item<double>();
    sums.tokens += sum.tokens.item<double>();
  }
  if (!per_token) mean.Finish(run.sizes.num_microbatches * run.sizes.data_parallel_size);
  return sums;
}

// One small message for all that ranks must agree on.
struct Agreed {
  double loss;
  double tokens;
  Votes votes;
};

Agreed Agree(Run& run, const LocalSums& sums, const Votes& votes) {
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
  for (const model::Parameter& parameter : run.model->parameters()) {
    if (!at::isfinite(parameter.grad).all().item<bool>()) {
      throw NanError(fmt::format("iteration {}: gradient norm is {} (lm loss {}); first in {}",
                                 iteration, result.grad_norm, result.lm_loss, parameter.name));
    }
  }
  throw NanError(fmt::format("iteration {}: gradient norm is {} (lm loss {})", iteration,
                             result.grad_norm, result.lm_loss));
}

}  // namespace

IterationResult TrainIteration(Run& run, int64_t iteration, int64_t consumed, const Votes& mine) {
  const config::TrainConfig& config = run.config();
  const at::Tensor gradients = run.model->gradient_buffer();
  gradients.zero_();
  const LocalSums sums = RunMicroBatches(run, consumed, gradients);
  const Agreed agreed = Agree(run, sums, mine);
  run.data_parallel->AllReduce(gradients, parallel::ReduceOp::kSum);
  if (config.calculate_per_token_loss) optim::DivideByTokens(gradients, agreed.tokens);

  IterationResult result;
  result.lm_loss = agreed.loss / std::max(agreed.tokens, 1.0);
  result.tokens = agreed.tokens;
  result.local_loss = sums.loss / std::max(sums.tokens, 1.0);
  result.votes = agreed.votes;
  result.grad_norm = optim::GradientNorm(gradients);
  const bool finite = std::isfinite(result.lm_loss) && std::isfinite(result.grad_norm);
  if (!finite && !config.no_check_for_nan) ThrowNan(run, iteration, result);

  result.clip_coefficient = optim::ClipCoefficient(result.grad_norm, config.clip_grad);
  result.learning_rate = run.lr.At(consumed);
  run.optimizer->Step({result.learning_rate, run.decoupled_lr.At(consumed)},
                      result.clip_coefficient);
  return result;
}

}  // namespace muster::loop
