#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trainer/data/sequence_store.h"

// Megatron's GPTDataset indices, built in memory: which tokens make up which sample. Pure.

namespace muster::data {

// An array of integers that is narrow where they fit, as Megatron stores it.
template <typename Narrow, typename Wide>
class IndexArray {
 public:
  void Resize(int64_t size, bool wide) {
    is_wide_ = wide;
    wide ? wide_.resize(static_cast<size_t>(size)) : narrow_.resize(static_cast<size_t>(size));
  }
  int64_t size() const { return static_cast<int64_t>(is_wide_ ? wide_.size() : narrow_.size()); }
  int64_t operator[](int64_t i) const {
    return is_wide_ ? static_cast<int64_t>(wide_[i]) : static_cast<int64_t>(narrow_[i]);
  }
  void Set(int64_t i, int64_t value) {
    is_wide_ ? wide_[i] = static_cast<Wide>(value) : narrow_[i] = static_cast<Narrow>(value);
  }
  bool is_wide() const { return is_wide_; }
  std::span<Narrow> narrow() { return narrow_; }
  std::span<Wide> wide() { return wide_; }
  std::span<const uint8_t> bytes() const {
    if (is_wide_) {
      return {reinterpret_cast<const uint8_t*>(wide_.data()), wide_.size() * sizeof(Wide)};
    }
    return {reinterpret_cast<const uint8_t*>(narrow_.data()), narrow_.size() * sizeof(Narrow)};
  }

 private:
  bool is_wide_ = false;
  std::vector<Narrow> narrow_;
  std::vector<Wide> wide_;
};

struct GptIndexParams {
  int64_t first_sequence = 0;  // the split: sequences first .. end of the store
  int64_t end_sequence = 0;
  std::optional<int64_t> num_samples;  // nothing: one epoch
  int64_t seq_length = 0;
  uint32_t seed = 1234;
  bool drop_last_partial_sequence = true;
  bool extra_token = true;  // samples overlap by one token, so that every position has a label
};

struct GptIndex {
  std::vector<int32_t> document;          // sequence numbers, repeated for each epoch, shuffled
  IndexArray<int32_t, int64_t> sample;    // 2 per sample, one sample more: position in `document`,
                                          // first token
  IndexArray<uint32_t, int64_t> shuffle;  // sample number asked for -> row of `sample`
  int64_t num_epochs = 1;
  int64_t num_samples() const { return shuffle.size(); }
};

// Sum of the lengths of the split. Throws DataError on a negative length.
int64_t CountTokens(LengthView lengths, int64_t first, int64_t end);

// Bytes that BuildGptIndex will need for its result.
int64_t GptIndexBytes(int64_t tokens_per_epoch, const GptIndexParams& params);

// `tokens_per_epoch` = CountTokens of the split, at least 1.
GptIndex BuildGptIndex(LengthView lengths, int64_t tokens_per_epoch, const GptIndexParams& params);

}  // namespace muster::data
