#include "trainer/data/batch_loader.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

namespace muster::data {
namespace {

// Ones where every label counts: the same tensor for all batches, which only read it.
at::Tensor LossMask(const std::vector<Sample>& samples, int64_t seq) {
  const auto batch = static_cast<int64_t>(samples.size());
  thread_local at::Tensor ones;
  if (!ones.defined() || ones.size(0) != batch || ones.size(1) != seq) {
    ones = at::ones({batch, seq}, at::kFloat);
  }
  at::Tensor mask_BS;
  for (int64_t b = 0; b < batch; ++b) {
    for (const int32_t input : samples[static_cast<size_t>(b)].uncounted) {
      if (!mask_BS.defined()) mask_BS = ones.clone();
      mask_BS.data_ptr<float>()[b * seq + input] = 0.0F;
    }
  }
  return mask_BS.defined() ? mask_BS : ones;
}

// 0, 1, 2 .. from each start on; undefined when no row has one.
at::Tensor Positions(const std::vector<Sample>& samples, int64_t seq) {
  at::Tensor positions_BS;
  const auto reset = [](const Sample& sample) { return !sample.position_starts.empty(); };
  if (std::none_of(samples.begin(), samples.end(), reset)) return positions_BS;
  positions_BS = at::empty({static_cast<int64_t>(samples.size()), seq}, at::kLong);
  std::span<int64_t> rows(positions_BS.data_ptr<int64_t>(),
                          static_cast<size_t>(positions_BS.numel()));
  for (const Sample& sample : samples) {
    const std::span<int64_t> row = rows.first(static_cast<size_t>(seq));
    rows = rows.subspan(row.size());
    std::iota(row.begin(), row.end(), int64_t{0});
    for (const int32_t start : sample.position_starts) {
      std::iota(row.begin() + start, row.end(), int64_t{0});
    }
  }
  return positions_BS;
}

// Empty when every row is one segment.
std::vector<int32_t> Segments(const std::vector<Sample>& samples, int64_t seq) {
  std::vector<int32_t> begins;
  int64_t row = 0;
  for (const Sample& sample : samples) {
    begins.push_back(static_cast<int32_t>(row));
    for (const int32_t start : sample.attention_starts) {
      begins.push_back(static_cast<int32_t>(row + start));
    }
    row += seq;
  }
  if (begins.size() == samples.size()) return {};
  begins.push_back(static_cast<int32_t>(row));
  return begins;
}

}  // namespace

Batch LoadMicroBatch(const SampleSource& source, const Shard& shard, int64_t consumed,
                     int64_t micro_batch) {
  const int64_t batch = shard.micro_batch_size;
  const int64_t seq = source.seq_length();
  const at::Tensor rows = at::empty({batch, seq + 1}, at::kLong);
  std::vector<Sample> samples;
  const int64_t first = shard.FirstSample(consumed, micro_batch);
  for (int64_t b = 0; b < batch; ++b) {
    samples.push_back({{rows.data_ptr<int64_t>() + b * (seq + 1), static_cast<size_t>(seq) + 1}});
    source.Read((first + b) % source.size(), samples.back());
  }
  // Two views of one row; of several rows, copies.
  Batch result{rows.narrow(1, 0, seq).contiguous(), rows.narrow(1, 1, seq).contiguous(),
               LossMask(samples, seq), Positions(samples, seq), Segments(samples, seq)};
  // What this rank reads next, also across the end of an iteration.
  const int64_t next = shard.FirstSample(consumed, micro_batch + 1);
  for (int64_t b = 0; b < batch; ++b) source.Prefetch((next + b) % source.size());
  return result;
}

}  // namespace muster::data
