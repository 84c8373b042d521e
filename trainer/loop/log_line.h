#pragma once

#include <cstdint>
#include <optional>
#include <string>

// The lines that Megatron-LM prints, letter by letter, since people's scripts parse them. Pure.

namespace muster::loop {

struct IterationLog {
  int64_t realtime_us = 0;  // microseconds since the epoch
  int64_t iteration = 0;
  int64_t train_iters = 0;
  int64_t consumed_samples = 0;
  double ms_per_iteration = 0;
  std::optional<double> tflops_per_gpu;  // --log-throughput
  struct Energy {
    double joules_per_gpu;  // of an iteration
    double watts_per_gpu;
    double joules_per_token;  // of a GPU
  };
  std::optional<Energy> energy;  // --log-energy
  double learning_rate = 0;      // of the next iteration
  int64_t global_batch_size = 0;
  double lm_loss = 0;  // mean over the interval; the field vanishes when it is NaN, as in Megatron
  double grad_norm = 0;
};

// ` [2026-11-29 12:00:00.123456] iteration        1/      10 | consumed samples: ...` in local
// time, without newline.
std::string IterationLine(const IterationLog& log);

// ` [rank 2] iteration 10/100 | ...`: one rank's own view (--log-all-ranks).
std::string RankLine(int64_t rank, const IterationLog& log, double local_loss,
                     int64_t local_samples);

// The three lines of an evaluation; `where`: "iteration 100", or "iteration 100 on validation set"
// at the end.
std::string ValidationLines(const std::string& where, double lm_loss);

}  // namespace muster::loop
