#pragma once

#include <cstdint>
#include <functional>

#include "trainer/data/batch.h"
#include "trainer/model/llama.h"
#include "trainer/parallel/groups.h"
#include "trainer/parallel/schedule.h"

namespace muster::model {

// A rank's part of a micro-batch, and how often it counts in the gradients.
struct MicroBatch {
  data::Batch batch;
  double loss_weight = 1;
};

// By number; may be asked for the same one several times, and on every stage.
using MicroBatchSource = std::function<MicroBatch(int64_t number)>;

// Sums over micro-batches, on ranks of the last stage; 0 elsewhere.
struct PipelineSums {
  double loss = 0;
  double tokens = 0;
};

// Forward and backward of all micro-batches through this rank's stages, with activations and their
// gradients going to and from its neighbours in the pipeline (a rank alone has none). Adds to the
// gradients. All ranks of the pipeline make the call. Throws CommError.
PipelineSums RunPipeline(Llama& llama, const parallel::Groups& groups,
                         const parallel::PipelineShape& shape, const MicroBatchSource& source);

// Forward only; nothing changes.
PipelineSums EvaluatePipeline(Llama& llama, const parallel::Groups& groups,
                              const parallel::PipelineShape& shape, const MicroBatchSource& source);

}  // namespace muster::model
