#include "trainer/data/batch_loader.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

namespace muster::data {
namespace {

// 0, 1, 2 .. from each start on.
void FillPositions(const std::vector<int32_t>& starts, std::span<int64_t> positions) {
  std::iota(positions.begin(), positions.end(), int64_t{0});
  for (const int32_t start : starts) {
    std::iota(positions.begin() + start, positions.end(), int64_t{0});
  }
}

}  // namespace

Batch LoadMicroBatch(const SampleSource& source, const Shard& shard, int64_t consumed,
                     int64_t micro_batch) {
  const int64_t batch = shard.micro_batch_size;
  const int64_t seq = source.seq_length();
  Batch result{at::empty({batch, seq}, at::kLong), at::empty({batch, seq}, at::kLong),
               at::empty({batch, seq}, at::kFloat)};
  const at::Tensor positions_BS = at::empty({batch, seq}, at::kLong);
  bool positions_reset = false;
  std::vector<int64_t> tokens(static_cast<size_t>(seq) + 1);
  const int64_t first = shard.FirstSample(consumed, micro_batch);
  for (int64_t b = 0; b < batch; ++b) {
    float* mask = result.loss_mask_BS.data_ptr<float>() + b * seq;
    Sample sample{tokens, {mask, static_cast<size_t>(seq)}, {}, {}};
    source.Read((first + b) % source.size(), sample);
    std::copy_n(tokens.data(), seq, result.tokens_BS.data_ptr<int64_t>() + b * seq);
    std::copy_n(tokens.data() + 1, seq, result.labels_BS.data_ptr<int64_t>() + b * seq);
    FillPositions(sample.position_starts,
                  {positions_BS.data_ptr<int64_t>() + b * seq, static_cast<size_t>(seq)});
    positions_reset = positions_reset || !sample.position_starts.empty();
    result.cu_seqlens.push_back(static_cast<int32_t>(b * seq));
    for (const int32_t start : sample.attention_starts) {
      result.cu_seqlens.push_back(static_cast<int32_t>(b * seq + start));
    }
  }
  if (positions_reset) result.position_ids_BS = positions_BS;
  if (static_cast<int64_t>(result.cu_seqlens.size()) == batch) {
    result.cu_seqlens.clear();
  } else {
    result.cu_seqlens.push_back(static_cast<int32_t>(batch * seq));
  }
  // What this rank reads next, also across the end of an iteration.
  const int64_t next = shard.FirstSample(consumed, micro_batch + 1);
  for (int64_t b = 0; b < batch; ++b) source.Prefetch((next + b) % source.size());
  return result;
}

}  // namespace muster::data
