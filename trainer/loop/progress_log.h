#pragma once

#include <cstdint>
#include <optional>

#include "trainer/loop/log_line.h"
#include "trainer/loop/run.h"
#include "trainer/loop/train_step.h"

namespace muster::loop {

// Averages over the log interval and prints the lines; tells every iteration to the event
// descriptor. One thread.
class ProgressLog {
 public:
  explicit ProgressLog(Run& run) : run_(run), joules_(run.engine->Joules()) {}

  // After each iteration; `seconds` it took. `consumed`: samples so far, this iteration's included.
  void Add(int64_t iteration, int64_t consumed, const IterationResult& result, double seconds);
  // An evaluation: `where` as in ValidationLines.
  void AddEvaluation(const std::string& where, int64_t iteration, double loss);

 private:
  std::optional<IterationLog::Energy> Energy();
  void Print(int64_t iteration, int64_t consumed, const IterationResult& result);

  Run& run_;
  bool first_ = true;
  int64_t iterations_ = 0;  // since the last line
  double loss_ = 0;
  double local_loss_ = 0;
  double seconds_ = 0;
  double joules_;  // the counter at the last line; negative: there is none
};

}  // namespace muster::loop
