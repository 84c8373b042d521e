#pragma once

#include <cstdint>

#include "trainer/loop/run.h"

namespace muster::loop {

// What the ranks tell each other once an iteration, in the same message as the loss.
struct Votes {
  bool terminate = false;  // SIGTERM came
  bool overtime = false;   // --exit-duration-in-mins has passed
};

struct IterationResult {
  double lm_loss = 0;  // mean over the tokens of all ranks
  double tokens = 0;   // unmasked, of all ranks
  double grad_norm = 0;
  double clip_coefficient = 1;
  double learning_rate = 0;  // that was used
  double local_loss = 0;     // mean over this rank's tokens
  Votes votes;               // true when any rank voted so
};

// One iteration: micro-batches from sample `consumed` on, reduction over the ranks, clipping,
// optimizer step. Every rank gets the same result but for local_loss. Throws NanError on every rank
// alike when loss or gradients are not finite (unless --no-check-for-nan-in-loss-and-grad).
IterationResult TrainIteration(Run& run, int64_t iteration, int64_t consumed, const Votes& mine);

}  // namespace muster::loop
