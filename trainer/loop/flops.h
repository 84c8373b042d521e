#pragma once

#include <cstdint>

#include "trainer/config/model_config.h"

namespace muster::loop {

// Floating-point operations of one iteration over `samples` samples: three passes over all
// matrices, causal attention counted at half; no recomputation, norms or softmax. Megatron's
// current formula, which its log line is computed from.
double FlopsPerIteration(const config::ModelConfig& model, int64_t samples);

}  // namespace muster::loop
