#pragma once

#include <cstdint>

#include "trainer/loop/run.h"

namespace muster::loop {

// Mean loss over --eval-iters global batches of `source` from sample `consumed` on; the same on
// every rank.
double Evaluate(Run& run, const data::SampleSource& source, int64_t consumed);

}  // namespace muster::loop
