#include "trainer/data/blended_source.h"

#include <fmt/format.h>

#include <utility>

#include "trainer/data/data_error.h"

namespace muster::data {

BlendedSource::BlendedSource(std::vector<std::unique_ptr<SampleSource>> parts, BlendIndex index)
    : parts_(std::move(parts)), index_(std::move(index)) {
  std::vector<int64_t> sizes;
  for (const auto& part : parts_) sizes.push_back(part->size());
  const std::span<const int16_t> datasets = index_.dataset.narrow();
  const std::span<const int64_t> samples = index_.dataset_sample.narrow();
  for (size_t i = 0; i < datasets.size(); ++i) {
    const auto part = static_cast<size_t>(datasets[i]);
    if (part >= sizes.size()) {
      throw DataError(
          fmt::format("{}: data set {} of a blend of {}: the index is damaged; remove "
                      "this file and it is built anew",
                      index_.dataset.Where(static_cast<int64_t>(i)), datasets[i], sizes.size()));
    }
    if (samples[i] < 0) {
      throw DataError(fmt::format(
          "{}: sample {} of data set {} (counted from 0): the index is damaged; remove this file "
          "and it is built anew",
          index_.dataset_sample.Where(static_cast<int64_t>(i)), samples[i], part));
    }
    if (samples[i] >= sizes[part]) {
      throw DataError(fmt::format(
          "{}: the blend asks data set {} (counted from 0) for sample {}, but it was built with "
          "{}: raise --mid-level-dataset-surplus, or its weight",
          index_.dataset_sample.Where(static_cast<int64_t>(i)), part, samples[i], sizes[part]));
    }
  }
}

void BlendedSource::Read(int64_t index, Sample& sample) const {
  Part(index).Read(index_.dataset_sample[index], sample);
}

void BlendedSource::Prefetch(int64_t index) const {
  Part(index).Prefetch(index_.dataset_sample[index]);
}

}  // namespace muster::data
