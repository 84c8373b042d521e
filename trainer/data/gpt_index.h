#pragma once

#include <cstdint>
#include <optional>

#include "trainer/data/index_array.h"
#include "trainer/data/sequence_store.h"

// Megatron's GPTDataset indices, built in memory: which tokens make up which sample. Pure.

namespace muster::data {

struct GptIndexParams {
  int64_t first_sequence = 0;  // the split: sequences first .. end of the store
  int64_t end_sequence = 0;
  std::optional<int64_t> num_samples;  // nothing: one epoch
  int64_t seq_length = 0;
  uint32_t seed = 1234;
  bool drop_last_partial_sequence = true;
  bool extra_token = true;  // samples overlap by one token, so that every position has a label
};

// What follows from the parameters and the number of tokens, before anything is built.
struct GptIndexShape {
  int64_t tokens_per_epoch = 0;
  int64_t num_epochs = 1;
  bool separate_last_epoch = false;  // it is shuffled apart from the others
  int64_t samples_without_last = 0;  // then: samples of the others
  int64_t num_documents = 0;         // entries of GptIndex::document
  int64_t num_samples = 0;

  bool wide_samples() const;
  bool wide_shuffle() const;
  int64_t bytes() const;  // of all three arrays
};
// Entries and samples that an index of one data set may have, and samples that a split may ask of
// it: beyond any memory, and small enough that no sum over all data sets of a run overflows.
inline constexpr int64_t kMostInIndex = int64_t{1} << 40;

// Throws DataError when an index would be asked for more than kMostInIndex samples.
void CheckIndexSamples(int64_t samples);

// `tokens_per_epoch` = CountTokens of the split, at least 1. Throws DataError above kMostInIndex.
GptIndexShape ShapeOf(int64_t tokens_per_epoch, const GptIndexParams& params);

struct GptIndex {
  IndexArray<int32_t, int64_t> document;  // sequence numbers, repeated for each epoch, shuffled;
                                          // never wide
  IndexArray<int32_t, int64_t> sample;    // 2 per sample, one sample more: position in `document`,
                                          // first token
  IndexArray<uint32_t, int64_t> shuffle;  // sample number asked for -> row of `sample`
  int64_t num_epochs = 1;
  int64_t num_samples() const { return shuffle.size(); }
};

// Sum of the lengths of the split, on `threads` threads. Throws DataError on a negative length.
int64_t CountTokens(const SequenceStore& store, int64_t first, int64_t end, int threads);

// The shuffles draw one number after the other; the sample index is cut meanwhile, on `threads`
// threads.
GptIndex BuildGptIndex(LengthView lengths, const GptIndexShape& shape, const GptIndexParams& params,
                       int threads);

}  // namespace muster::data
