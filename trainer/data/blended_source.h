#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/data/blend.h"
#include "trainer/data/sample_source.h"

namespace muster::data {

// Megatron's BlendedDataset: samples of several sources in the order of a blend index.
class BlendedSource : public SampleSource {
 public:
  // Looks at the whole index. Throws DataError when it asks a source for more samples than it has
  // (a tiny weight, rounded up), or names none.
  BlendedSource(std::vector<std::unique_ptr<SampleSource>> parts, BlendIndex index);

  int64_t size() const override { return index_.dataset.size(); }
  int64_t seq_length() const override { return parts_.front()->seq_length(); }
  void Read(int64_t index, Sample& sample) const override;
  void Prefetch(int64_t index) const override;

  const BlendIndex& index() const { return index_; }
  const std::vector<std::unique_ptr<SampleSource>>& parts() const { return parts_; }

 private:
  const SampleSource& Part(int64_t index) const {
    return *parts_[static_cast<size_t>(index_.dataset[index])];
  }

  std::vector<std::unique_ptr<SampleSource>> parts_;
  BlendIndex index_;
};

}  // namespace muster::data
