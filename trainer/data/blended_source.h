#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/data/blend.h"
#include "trainer/data/sample_source.h"

namespace muster::data {

// Megatron's BlendedDataset: samples of several sources in the order of a blend index.
class BlendedSource : public SampleSource {
 public:
  // Throws DataError when the index asks a source for more samples than it has (a tiny weight,
  // rounded up).
  BlendedSource(std::vector<std::unique_ptr<SampleSource>> parts, BlendIndex index);

  int64_t size() const override { return static_cast<int64_t>(index_.dataset.size()); }
  int64_t seq_length() const override { return parts_.front()->seq_length(); }
  void Get(int64_t index, std::span<int64_t> tokens, std::span<float> loss_mask) const override;

  const BlendIndex& index() const { return index_; }
  const std::vector<std::unique_ptr<SampleSource>>& parts() const { return parts_; }

 private:
  std::vector<std::unique_ptr<SampleSource>> parts_;
  BlendIndex index_;
};

}  // namespace muster::data
