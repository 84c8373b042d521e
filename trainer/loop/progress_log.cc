#include "trainer/loop/progress_log.h"

#include <cstdio>

#include "common/clock.h"
#include "trainer/loop/flops.h"
#include "trainer/loop/log_line.h"

namespace muster::loop {
namespace {

void PrintLine(const std::string& line) {
  std::fwrite((line + "\n").data(), 1, line.size() + 1, stdout);
  std::fflush(stdout);
}

}  // namespace

void ProgressLog::Add(int64_t iteration, int64_t consumed, const IterationResult& result,
                      double seconds) {
  ++iterations_;
  loss_ += result.lm_loss;
  local_loss_ += result.local_loss;
  seconds_ += seconds;
  const auto& c = run_.config();
  run_.events->Write(
      "iteration",
      {{"iteration", iteration},
       {"train_iters", run_.sizes.train_iters},
       {"consumed_samples", consumed},
       {"lm_loss", result.lm_loss},
       {"local_lm_loss", result.local_loss},
       {"grad_norm", result.grad_norm},
       {"learning_rate", result.learning_rate},
       {"next_learning_rate", run_.lr.At(consumed)},
       {"tokens", result.tokens},
       {"elapsed_ms", seconds * 1e3},
       {"tokens_per_s", static_cast<double>(c.global_batch_size * c.model.seq_length) / seconds}});
  if (first_ || iteration % c.log_interval == 0) Print(iteration, consumed, result);
}

// Of this rank's GPU since the last line.
std::optional<IterationLog::Energy> ProgressLog::Energy() {
  if (!run_.config().log_energy || joules_ < 0) return std::nullopt;
  const double now = run_.engine->Joules();
  const double used = (now - joules_) / static_cast<double>(iterations_);
  joules_ = now;
  const auto& c = run_.config();
  const double tokens = static_cast<double>(c.global_batch_size * c.model.seq_length) /
                        static_cast<double>(run_.env.world_size);
  return IterationLog::Energy{used, used * static_cast<double>(iterations_) / seconds_,
                              used / tokens};
}

void ProgressLog::Print(int64_t iteration, int64_t consumed, const IterationResult& result) {
  const auto& c = run_.config();
  const auto n = static_cast<double>(iterations_);
  IterationLog log;
  log.realtime_us = Clock::Real().RealtimeNs() / 1000;
  log.iteration = iteration;
  log.train_iters = run_.sizes.train_iters;
  log.consumed_samples = consumed;
  log.ms_per_iteration = seconds_ / n * 1e3;
  if (c.log_throughput) {
    const double flops = FlopsPerIteration(c.model, c.global_batch_size);
    log.tflops_per_gpu = flops / (seconds_ / n * 1e12 * static_cast<double>(run_.env.world_size));
  }
  log.energy = Energy();
  log.learning_rate = run_.lr.At(consumed);
  log.global_batch_size = c.global_batch_size;
  log.lm_loss = loss_ / n;
  log.grad_norm = result.grad_norm;
  if (c.log_all_ranks && run_.groups.IsLastStage()) {  // the others see no loss of their own
    PrintLine(
        RankLine(run_.env.rank, log, local_loss_ / n, consumed / run_.sizes.data_parallel_size));
  }
  if (run_.IsLastRank()) PrintLine(IterationLine(log));
  first_ = false;
  iterations_ = 0;
  loss_ = local_loss_ = seconds_ = 0;
}

void ProgressLog::AddEvaluation(const std::string& where, int64_t iteration, double loss) {
  run_.events->Write("validation", {{"iteration", iteration}, {"where", where}, {"lm_loss", loss}});
  if (run_.IsLastRank()) PrintLine(ValidationLines(where, loss));
}

}  // namespace muster::loop
