#pragma once

#include <cstdint>
#include <span>

namespace muster::data {

// A sequence of training samples of equal length. Constructed, then immutable: any thread, any
// number of readers.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  virtual int64_t size() const = 0;
  virtual int64_t seq_length() const = 0;

  // Sample `index`, 0 <= index < size(). `tokens` has seq_length() + 1 elements: position i is the
  // input and position i + 1 its label. `loss_mask` has seq_length() elements: 1 where the label
  // counts, else 0. Throws DataError when a token is not below the vocabulary size, or when the
  // file can't be read.
  virtual void Get(int64_t index, std::span<int64_t> tokens, std::span<float> loss_mask) const = 0;
};

}  // namespace muster::data
