#include "trainer/data/streamed_source.h"

#include "trainer/data/permutation.h"

namespace muster::data {

int64_t StreamedSource::Window(int64_t index) const {
  const int64_t count = samples_.epoch_samples();
  const Permutation order(count, seed_, static_cast<uint64_t>(index / count));
  return order(index % count);
}

void StreamedBlend::Read(int64_t index, Sample& sample) const {
  const PeriodicBlend::Draw draw = blend_(index);
  parts_[static_cast<size_t>(draw.dataset)]->Read(draw.sample, sample);
}

void StreamedBlend::Prefetch(int64_t index) const {
  const PeriodicBlend::Draw draw = blend_(index);
  parts_[static_cast<size_t>(draw.dataset)]->Prefetch(draw.sample);
}

}  // namespace muster::data
