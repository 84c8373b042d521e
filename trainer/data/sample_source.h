#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace muster::data {

// One training sample. The caller provides `tokens` and `loss_mask`; the rest is filled in.
struct Sample {
  std::span<int64_t> tokens;   // seq_length + 1: position i is the input, position i + 1 its label
  std::span<float> loss_mask;  // seq_length: 1 where the label counts, else 0
  // Inputs above 0, in order, from which on attention does not look back (attention_starts) and at
  // which positions count from 0 again (position_starts). Empty unless the rules ask for them.
  std::vector<int32_t> attention_starts;
  std::vector<int32_t> position_starts;
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

  // Tokens and mask alone.
  void Get(int64_t index, std::span<int64_t> tokens, std::span<float> loss_mask) const {
    Sample sample{tokens, loss_mask, {}, {}};
    Read(index, sample);
  }
};

}  // namespace muster::data
