#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace muster::data {

// One training sample. The caller provides `tokens`; the rest is filled in.
struct Sample {
  std::span<int64_t> tokens;  // seq_length + 1: position i is the input, position i + 1 its label
  // Inputs whose labels don't count in the loss, in any order. Few or none: a mask of them all
  // would take longer to write than most samples take to read.
  std::vector<int32_t> uncounted = {};
  // Inputs above 0, in order, from which on attention does not look back (attention_starts) and at
  // which positions count from 0 again (position_starts). Empty unless the rules ask for them.
  std::vector<int32_t> attention_starts = {};
  std::vector<int32_t> position_starts = {};
};

// A sequence of training samples of equal length. Constructed, then immutable: any thread, any
// number of readers.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  virtual int64_t size() const = 0;
  virtual int64_t seq_length() const = 0;

  // Fills `sample` with sample `index`, 0 <= index < size(). Throws DataError when a token is not
  // below the vocabulary size, when an index is damaged, or when a file can't be read.
  virtual void Read(int64_t index, Sample& sample) const = 0;

  // Asks the system to fetch what Read(index) will need. Never fails, never waits.
  virtual void Prefetch(int64_t /*index*/) const {}

  // Tokens, and a mask of the inputs: 1 where the label counts, else 0.
  void Get(int64_t index, std::span<int64_t> tokens, std::span<float> loss_mask) const {
    Sample sample{tokens};
    Read(index, sample);
    std::fill(loss_mask.begin(), loss_mask.end(), 1.0F);
    for (const int32_t i : sample.uncounted) loss_mask[static_cast<size_t>(i)] = 0.0F;
  }
};

}  // namespace muster::data
