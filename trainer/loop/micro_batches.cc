#include "trainer/loop/micro_batches.h"

#include <utility>

#include "trainer/data/batch_loader.h"

namespace muster::loop {

engine::MicroBatches MicroBatchesOf(const Run& run, const data::SampleSource& source,
                                    int64_t consumed) {
  return {.count = run.sizes.num_microbatches, .load = [&run, &source, consumed](int64_t number) {
            data::Batch batch = data::LoadMicroBatch(source, run.shard, consumed, number);
            const auto tokens = batch.loss_mask_BS.sum().item<double>();
            return engine::MicroBatch{std::move(batch), tokens};
          }};
}

}  // namespace muster::loop
