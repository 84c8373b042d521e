#include "trainer/data/blended_source.h"

#include <fmt/format.h>

#include <utility>

#include "trainer/data/data_error.h"

namespace muster::data {

BlendedSource::BlendedSource(std::vector<std::unique_ptr<SampleSource>> parts, BlendIndex index)
    : parts_(std::move(parts)), index_(std::move(index)) {
  for (size_t i = 0; i < index_.dataset.size(); ++i) {
    const auto part = static_cast<size_t>(index_.dataset[i]);
    if (index_.dataset_sample[i] >= parts_[part]->size()) {
      throw DataError(fmt::format(
          "the blend asks data set {} (counted from 0) for sample {}, but it was built with {}: "
          "raise --mid-level-dataset-surplus, or its weight",
          part, index_.dataset_sample[i], parts_[part]->size()));
    }
  }
}

void BlendedSource::Get(int64_t index, std::span<int64_t> tokens,
                        std::span<float> loss_mask) const {
  const auto i = static_cast<size_t>(index);
  parts_[static_cast<size_t>(index_.dataset[i])]->Get(index_.dataset_sample[i], tokens, loss_mask);
}

}  // namespace muster::data
