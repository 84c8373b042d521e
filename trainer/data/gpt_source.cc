#include "trainer/data/gpt_source.h"

#include <algorithm>
#include <utility>

namespace muster::data {

GptSource::GptSource(std::shared_ptr<const SequenceStore> store, GptIndex index, int64_t seq_length,
                     bool extra_token, const LossRules& rules)
    : store_(std::move(store)),
      index_(std::move(index)),
      seq_length_(seq_length),
      extra_token_(extra_token),
      reader_(*store_, rules) {}

void GptSource::Get(int64_t index, std::span<int64_t> tokens, std::span<float> loss_mask) const {
  const int64_t row = index_.shuffle[index];
  int64_t document = index_.sample[2 * row];
  int64_t offset = index_.sample[2 * row + 1];
  const auto documents = static_cast<int64_t>(index_.document.size());
  // Without the extra token the last position has no label: it stays padding.
  const auto wanted = static_cast<size_t>(seq_length_ + (extra_token_ ? 1 : 0));
  size_t used = 0;
  for (; used < wanted && document < documents; ++document, offset = 0) {
    used += static_cast<size_t>(
        reader_.Gather(index_.document[document], offset, tokens.subspan(used, wanted - used)));
  }
  reader_.Finish(static_cast<int64_t>(used), tokens, loss_mask);
}

}  // namespace muster::data
