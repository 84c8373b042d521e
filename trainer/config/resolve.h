#pragma once

#include <cstdint>

#include "trainer/config/parse.h"

// From what was said to what will run: derived values, then Megatron's checks. Pure.

namespace muster::config {

// Sizes of the run that follow from flags and world size.
struct RunSizes {
  int64_t data_parallel_size = 1;
  int64_t num_microbatches = 1;
  int64_t train_iters = 0;
  int64_t train_samples = 0;  // train_iters * global batch size
  // The schedule counts samples whatever the flags counted. A fraction's warm-up may end within
  // one.
  double lr_warmup_samples = 0;
  int64_t lr_decay_samples = 0;
};

// Model sizes read elsewhere (a config.json) for the flags that were not given.
void AdoptModel(const ModelConfig& from, CommandLine& line);

// Fills line.config's derived fields (origin "derived") and returns the sizes. Throws ConfigError
// naming the flag, the reason and, where a number does not divide, the nearest ones that do.
// `vocab_size` must be known by now.
RunSizes Resolve(int64_t world_size, CommandLine& line);

}  // namespace muster::config
