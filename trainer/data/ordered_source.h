#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/data/indexed_dataset.h"
#include "trainer/data/sample_reader.h"
#include "trainer/data/sample_source.h"
#include "trainer/data/split.h"

// The two unshuffled data orders. When more samples are asked than there are, they start again at
// the first.

namespace muster::data {

// `--data-order sequential`: sample k holds tokens k*s .. k*s+s of the split.
class SequentialSource : public SampleSource {
 public:
  // `split` in sequences. A size below zero means one epoch.
  SequentialSource(std::shared_ptr<const SequenceStore> store, Range split, int64_t seq_length,
                   int64_t size, const LossRules& rules);

  int64_t size() const override { return size_; }
  int64_t seq_length() const override { return seq_length_; }
  void Get(int64_t index, std::span<int64_t> tokens, std::span<float> loss_mask) const override;

 private:
  std::shared_ptr<const SequenceStore> store_;
  Range split_;
  int64_t seq_length_;
  int64_t epoch_samples_ = 0;
  int64_t size_;
  std::vector<int64_t> first_token_;  // of each sequence of the split, and the end
  SampleReader reader_;
};

// `--data-order document`: sample k is document k of the split, cut or padded to s+1 tokens.
class DocumentSource : public SampleSource {
 public:
  // `split` in documents. A size below zero means one epoch.
  DocumentSource(std::shared_ptr<const IndexedDataset> store, Range split, int64_t seq_length,
                 int64_t size, const LossRules& rules);

  int64_t size() const override { return size_; }
  int64_t seq_length() const override { return seq_length_; }
  void Get(int64_t index, std::span<int64_t> tokens, std::span<float> loss_mask) const override;

 private:
  std::shared_ptr<const IndexedDataset> store_;
  Range split_;
  int64_t seq_length_;
  int64_t size_;
  SampleReader reader_;
};

}  // namespace muster::data
