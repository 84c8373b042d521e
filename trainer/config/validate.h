#pragma once

#include <cstdint>
#include <string>

#include "trainer/config/resolve.h"

// Megatron's checks, one function a theme. Each throws ConfigError: the flag, the reason, the way
// out. Pure.

namespace muster::config {

// What must be said, and what must not be said together.
void CheckGiven(const CommandLine& line);
void CheckParallel(int64_t world_size, const TrainConfig& config);
// Once the model's sizes and the number of micro-batches are known.
void CheckLayout(const TrainConfig& config, const RunSizes& sizes);
void CheckGlobalBatch(int64_t global_batch, int64_t micro_batch, int64_t data_parallel);
// Before anything is multiplied by the batch size.
void CheckLength(const TrainConfig& config, int64_t iterations);
void CheckModel(const TrainConfig& config);
void CheckPrecision(const TrainConfig& config);
void CheckSchedule(const CommandLine& line, const RunSizes& sizes);
void CheckFiles(const TrainConfig& config);

// "96 or 112": the multiples of `step` around `value`.
std::string NearestMultiples(int64_t value, int64_t step);
// `value` of flag `name` must be a multiple of `divisor`, which flag `by` gives.
void CheckDivides(const char* name, int64_t value, const char* by, int64_t divisor);

}  // namespace muster::config
