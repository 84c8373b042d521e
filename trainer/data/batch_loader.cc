#include "trainer/data/batch_loader.h"

#include <ATen/ops/empty.h>

#include <span>
#include <vector>

namespace muster::data {

Batch LoadMicroBatch(const SampleSource& source, const Shard& shard, int64_t consumed,
                     int64_t micro_batch) {
  const int64_t batch = shard.micro_batch_size;
  const int64_t seq = source.seq_length();
  Batch result{at::empty({batch, seq}, at::kLong), at::empty({batch, seq}, at::kLong),
               at::empty({batch, seq}, at::kFloat)};
  std::vector<int64_t> tokens(static_cast<size_t>(seq) + 1);
  const int64_t first = shard.FirstSample(consumed, micro_batch);
  for (int64_t b = 0; b < batch; ++b) {
    float* mask = result.loss_mask_BS.data_ptr<float>() + b * seq;
    source.Get((first + b) % source.size(), tokens,
               std::span<float>(mask, static_cast<size_t>(seq)));
    std::copy_n(tokens.data(), seq, result.tokens_BS.data_ptr<int64_t>() + b * seq);
    std::copy_n(tokens.data() + 1, seq, result.labels_BS.data_ptr<int64_t>() + b * seq);
  }
  return result;
}

}  // namespace muster::data
