#pragma once

#include <cstdint>
#include <memory>

#include "trainer/data/indexed_dataset.h"
#include "trainer/data/sample_reader.h"
#include "trainer/data/sample_source.h"
#include "trainer/data/split.h"
#include "trainer/data/token_stream.h"

// The data orders that follow the file; they keep no index in memory. When more samples are asked
// than there are, they start again at the first.

namespace muster::data {

// Samples cut from a TokenStream, one every seq_length tokens.
class StreamSamples {
 public:
  // Throws DataError when the split does not hold one sample.
  StreamSamples(std::shared_ptr<const SequenceStore> store, Range split, int64_t seq_length,
                const SampleRules& rules);

  int64_t epoch_samples() const { return epoch_samples_; }
  int64_t seq_length() const { return seq_length_; }
  // Sample `window`, 0 <= window < epoch_samples(): tokens window*s .. window*s+s.
  void Read(int64_t window, Sample& sample) const;
  void Prefetch(int64_t window) const;

 private:
  std::shared_ptr<const SequenceStore> store_;
  TokenStream stream_;
  int64_t seq_length_;
  int64_t epoch_samples_;
  SampleReader reader_;
};

// `--data-order sequential`: sample k holds tokens k*s .. k*s+s of the split.
class SequentialSource : public SampleSource {
 public:
  // A size below zero means one epoch.
  SequentialSource(StreamSamples samples, int64_t size)
      : samples_(std::move(samples)), size_(size < 0 ? samples_.epoch_samples() : size) {}

  int64_t size() const override { return size_; }
  int64_t seq_length() const override { return samples_.seq_length(); }
  void Read(int64_t index, Sample& sample) const override {
    samples_.Read(index % samples_.epoch_samples(), sample);
  }
  void Prefetch(int64_t index) const override {
    samples_.Prefetch(index % samples_.epoch_samples());
  }

 private:
  StreamSamples samples_;
  int64_t size_;
};

// `--data-order document`: sample k is document k of the split, cut or padded to s+1 tokens.
class DocumentSource : public SampleSource {
 public:
  // `split` in documents. A size below zero means one epoch.
  DocumentSource(std::shared_ptr<const IndexedDataset> store, Range split, int64_t seq_length,
                 int64_t size, const SampleRules& rules);

  int64_t size() const override { return size_; }
  int64_t seq_length() const override { return seq_length_; }
  void Read(int64_t index, Sample& sample) const override;

 private:
  std::shared_ptr<const IndexedDataset> store_;
  Range split_;
  int64_t seq_length_;
  int64_t size_;
  SampleReader reader_;
};

}  // namespace muster::data
