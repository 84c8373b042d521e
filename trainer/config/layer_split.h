#pragma once

#include <cstdint>
#include <vector>

#include "trainer/config/train_config.h"

namespace muster::config {

// How many layers each chunk of each pipeline stage has: [stage][chunk]. The model's layers go
// round the stages, chunk by chunk.
using LayerSplit = std::vector<std::vector<int64_t>>;

// Chunks of a stage (virtual stages).
int64_t ChunksPerStage(const TrainConfig& config);

// Megatron's rules: equal stages; --decoder-first/last-pipeline-num-layers set those of the first
// and the last, and the others share the rest; --account-for-embedding/loss-in-pipeline-split count
// as a layer of the first or last chunk. Throws ConfigError: which flags do not divide, and why.
LayerSplit SplitLayers(const TrainConfig& config);

}  // namespace muster::config
