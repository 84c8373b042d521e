#include "trainer/data/ordered_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trainer/data/data_error.h"
#include "trainer/data/gpt_index.h"

namespace muster::data {

SequentialSource::SequentialSource(std::shared_ptr<const SequenceStore> store, Range split,
                                   int64_t seq_length, int64_t size, const LossRules& rules)
    : store_(std::move(store)),
      split_(split),
      seq_length_(seq_length),
      size_(size),
      reader_(*store_, rules) {
  const LengthView lengths = store_->lengths();
  CountTokens(lengths, split.begin, split.end);  // refuses negative lengths
  int64_t total = 0;
  for (int64_t i = split.begin; i < split.end; ++i) {
    first_token_.push_back(total);
    total += lengths[i];
  }
  first_token_.push_back(total);
  epoch_samples_ = (total - 1) / seq_length;
  if (size_ < 0) size_ = std::max<int64_t>(epoch_samples_, 0);
  if (size_ > 0 && epoch_samples_ < 1) {
    throw DataError(
        fmt::format("the split holds {} tokens; one sample needs {}", total, seq_length + 1));
  }
}

void SequentialSource::Get(int64_t index, std::span<int64_t> tokens,
                           std::span<float> loss_mask) const {
  const int64_t first = (index % epoch_samples_) * seq_length_;
  const auto after = std::upper_bound(first_token_.begin(), first_token_.end(), first);
  int64_t nth = after - first_token_.begin() - 1;
  int64_t offset = first - first_token_[nth];
  size_t used = 0;
  for (; used < tokens.size(); ++nth, offset = 0) {
    used += static_cast<size_t>(reader_.Gather(split_.begin + nth, offset, tokens.subspan(used)));
  }
  reader_.Finish(static_cast<int64_t>(used), tokens, loss_mask);
}

DocumentSource::DocumentSource(std::shared_ptr<const IndexedDataset> store, Range split,
                               int64_t seq_length, int64_t size, const LossRules& rules)
    : store_(std::move(store)),
      split_(split),
      seq_length_(seq_length),
      size_(size < 0 ? split.size() : size),
      reader_(*store_, rules) {}

void DocumentSource::Get(int64_t index, std::span<int64_t> tokens,
                         std::span<float> loss_mask) const {
  const int64_t document = split_.begin + index % split_.size();
  const int64_t begin = store_->document_begin(document);
  const int64_t end = store_->document_begin(document + 1);
  if (begin < 0 || end < begin || end > store_->lengths().size()) {
    throw DataError(fmt::format("{}.idx: document {} spans the sequences {} to {} of {}",
                                store_->prefix(), document, begin, end, store_->lengths().size()));
  }
  size_t used = 0;
  for (int64_t i = begin; i < end && used < tokens.size(); ++i) {
    used += static_cast<size_t>(reader_.Gather(i, 0, tokens.subspan(used)));
  }
  reader_.Finish(static_cast<int64_t>(used), tokens, loss_mask);
}

}  // namespace muster::data
