#include "trainer/loop/train_step.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "trainer/config/error.h"
#include "trainer/loop/micro_batches.h"
#include "trainer/optim/gradients.h"

namespace muster::loop {
namespace {

// One small message for all that ranks must agree on.
struct Agreed {
  double loss;
  double tokens;
  Votes votes;
};

Agreed Agree(Run& run, const engine::Sums& sums, const Votes& votes) {
  const at::Tensor message = at::empty({4}, at::kDouble);
  double* values = message.data_ptr<double>();
  values[0] = run.groups.CountsLoss() ? sums.loss : 0;
  values[1] = run.groups.CountsLoss() ? sums.tokens : 0;
  values[2] = votes.terminate ? 1 : 0;
  values[3] = votes.overtime ? 1 : 0;
  run.groups.world->AllReduce(message, parallel::ReduceOp::kSum);
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
  run.engine->BeginIteration();
  run.engine->ForwardBackward(MicroBatchesOf(run, *run.data.train, consumed),
                              config.calculate_per_token_loss ? engine::Averaging::kTokens
                                                              : engine::Averaging::kMicroBatches);
  const engine::Sums sums = run.engine->TakeSums();
  const Agreed agreed = Agree(run, sums, mine);
  run.engine->ReduceGradients();

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
