#include "trainer/data/ordered_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "trainer/data/data_error.h"

namespace muster::data {

StreamSamples::StreamSamples(std::shared_ptr<const SequenceStore> store, Range split,
                             int64_t seq_length, const SampleRules& rules)
    : store_(std::move(store)),
      stream_(store_, split),
      seq_length_(seq_length),
      epoch_samples_((stream_.size() - 1) / seq_length),
      reader_(*store_, rules) {
  if (epoch_samples_ < 1) {
    throw DataError(fmt::format("the split holds {} tokens; one sample needs {}", stream_.size(),
                                seq_length + 1));
  }
}

void StreamSamples::Read(int64_t window, Sample& sample) const {
  thread_local std::vector<Piece> pieces;
  pieces.clear();
  stream_.ForEachPiece(window * seq_length_, seq_length_ + 1,
                       [](int64_t sequence, int64_t offset, int64_t count) {
                         pieces.push_back({sequence, offset, count});
                       });
  reader_.Read(pieces, true, sample);
}

void StreamSamples::Prefetch(int64_t window) const {
  try {
    stream_.ForEachPiece(window * seq_length_, seq_length_ + 1,
                         [this](int64_t sequence, int64_t offset, int64_t count) {
                           store_->Prefetch(sequence, offset, count);
                         });
  } catch (const DataError&) {  // Read will say it
  }
}

DocumentSource::DocumentSource(std::shared_ptr<const IndexedDataset> store, Range split,
                               int64_t seq_length, int64_t size, const SampleRules& rules)
    : store_(std::move(store)),
      split_(split),
      seq_length_(seq_length),
      size_(size < 0 ? split.size() : size),
      reader_(*store_, rules) {}

void DocumentSource::Read(int64_t index, Sample& sample) const {
  const Range sequences = store_->SequencesOf(split_.begin + index % split_.size());
  auto room = static_cast<int64_t>(sample.tokens.size());
  std::vector<Piece> pieces;
  for (int64_t i = sequences.begin; i < sequences.end && room > 0; ++i) {
    pieces.push_back({i, 0, std::min<int64_t>(store_->lengths()[i], room)});
    room -= pieces.back().count;
  }
  reader_.Read(pieces, false, sample);
}

}  // namespace muster::data
