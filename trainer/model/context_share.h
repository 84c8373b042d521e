#pragma once

#include "trainer/data/batch.h"

namespace muster::model {

// What context-parallel rank `rank` of `size` takes of a micro-batch: its two chunks of every
// sequence (layers/context_parallel.h), with the positions of their tokens. The sequence divides
// into 2 * size chunks and has no segments of attention. A rank alone takes the batch as it is.
data::Batch ContextShare(const data::Batch& batch, int64_t rank, int64_t size);

}  // namespace muster::model
