#include "trainer/model/context_share.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>

#include <stdexcept>

#include "trainer/layers/context_parallel.h"

namespace muster::model {

data::Batch ContextShare(const data::Batch& batch, int64_t rank, int64_t size) {
  if (size == 1) return batch;
  const int64_t positions = batch.tokens_BS.size(1);
  if (positions % (2 * size) != 0 || !batch.cu_seqlens.empty()) {
    throw std::invalid_argument("a sequence that context-parallel ranks can't share");
  }
  const int64_t length = positions / (2 * size);
  const auto chunks = layers::ContextParallel::ChunksOf(rank, size);
  const auto share = [&](const at::Tensor& x_BS) {
    return at::cat(
        {x_BS.narrow(1, chunks[0] * length, length), x_BS.narrow(1, chunks[1] * length, length)},
        1);
  };
  const at::Tensor ids_BS = batch.position_ids_BS.defined()
                                ? batch.position_ids_BS
                                : at::arange(positions, at::kLong).expand_as(batch.tokens_BS);
  return {share(batch.tokens_BS), share(batch.labels_BS), share(batch.loss_mask_BS), share(ids_BS)};
}

}  // namespace muster::model
