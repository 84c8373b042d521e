#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "trainer/data/ordered_source.h"
#include "trainer/data/periodic_blend.h"
#include "trainer/data/sample_source.h"

// `--index-order streamed`: shuffled samples without an index in memory. docs/datasets.md defines
// the order; its version is kStreamedOrder, and a change of the order needs a new one.

namespace muster::data {

inline constexpr char kStreamedOrder[] = "streamed-1";

// Epoch after epoch, each sample of the split once, in the order of Permutation(epoch).
class StreamedSource : public SampleSource {
 public:
  // A size below zero means one epoch.
  StreamedSource(StreamSamples samples, int64_t size, uint64_t seed)
      : samples_(std::move(samples)),
        size_(size < 0 ? samples_.epoch_samples() : size),
        seed_(seed) {}

  int64_t size() const override { return size_; }
  int64_t seq_length() const override { return samples_.seq_length(); }
  void Read(int64_t index, Sample& sample) const override { samples_.Read(Window(index), sample); }
  void Prefetch(int64_t index) const override { samples_.Prefetch(Window(index)); }

  // The sample in file order that `index` is.
  int64_t Window(int64_t index) const;
  int64_t epoch_samples() const { return samples_.epoch_samples(); }

 private:
  StreamSamples samples_;
  int64_t size_;
  uint64_t seed_;
};

// Several sources in the order of a PeriodicBlend.
class StreamedBlend : public SampleSource {
 public:
  StreamedBlend(std::vector<std::unique_ptr<SampleSource>> parts, PeriodicBlend blend, int64_t size)
      : parts_(std::move(parts)), blend_(std::move(blend)), size_(size) {}

  int64_t size() const override { return size_; }
  int64_t seq_length() const override { return parts_.front()->seq_length(); }
  void Read(int64_t index, Sample& sample) const override;
  void Prefetch(int64_t index) const override;

 private:
  std::vector<std::unique_ptr<SampleSource>> parts_;
  PeriodicBlend blend_;
  int64_t size_;
};

}  // namespace muster::data
