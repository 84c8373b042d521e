#pragma once

#include <cstdint>

#include "trainer/data/sample_source.h"
#include "trainer/engine/engine.h"
#include "trainer/loop/run.h"

namespace muster::loop {

// This rank's part of the iteration that starts at sample `consumed` of `source`. `run` and
// `source` outlive the result.
engine::MicroBatches MicroBatchesOf(const Run& run, const data::SampleSource& source,
                                    int64_t consumed);

}  // namespace muster::loop
