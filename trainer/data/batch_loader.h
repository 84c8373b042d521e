#pragma once

#include <cstdint>

#include "trainer/data/batch.h"
#include "trainer/data/sample_source.h"
#include "trainer/data/sharding.h"

namespace muster::data {

// Micro-batch `micro_batch` of this rank, counted from sample `consumed` (consumed samples so far
// over all ranks). Sample numbers beyond the source start again at its first sample. Asks the
// system for the data of the next one. Throws as SampleSource::Read does.
Batch LoadMicroBatch(const SampleSource& source, const Shard& shard, int64_t consumed,
                     int64_t micro_batch);

}  // namespace muster::data
