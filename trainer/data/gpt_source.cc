#include "trainer/data/gpt_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "trainer/data/data_error.h"

namespace muster::data {
namespace {

[[noreturn]] void Damaged(const std::string& where, const char* what, int64_t value,
                          int64_t limit) {
  throw DataError(
      fmt::format("{}: {} {} is not in 0 .. {}: the index is damaged, or the data "
                  "changed after it was built; remove this file and it is built anew",
                  where, what, value, limit - 1));
}

}  // namespace

GptSource::GptSource(std::shared_ptr<const SequenceStore> store, GptIndex index, int64_t seq_length,
                     bool extra_token, const SampleRules& rules)
    : store_(std::move(store)),
      index_(std::move(index)),
      seq_length_(seq_length),
      extra_token_(extra_token),
      reader_(*store_, rules) {}

template <typename Piece>
void GptSource::ForEachPiece(int64_t index, Piece piece) const {
  const LengthView lengths = store_->lengths();
  const int64_t documents = index_.document.size();
  const int64_t row = index_.shuffle[index];
  if (row < 0 || row >= index_.num_samples()) {
    Damaged(index_.shuffle.Where(index), "row", row, index_.num_samples());
  }
  int64_t document = index_.sample[2 * row];
  if (document < 0 || document >= documents) {
    Damaged(index_.sample.Where(2 * row), "position", document, documents);
  }
  int64_t offset = index_.sample[2 * row + 1];
  // Without the extra token the last position has no label: it stays padding.
  int64_t wanted = seq_length_ + (extra_token_ ? 1 : 0);
  for (; wanted > 0 && document < documents; ++document, offset = 0) {
    const int64_t sequence = index_.document[document];
    if (sequence < 0 || sequence >= lengths.size()) {
      Damaged(index_.document.Where(document), "sequence", sequence, lengths.size());
    }
    if (offset < 0 || offset > lengths[sequence]) {
      Damaged(index_.sample.Where(2 * row + 1), "token", offset, int64_t{lengths[sequence]} + 1);
    }
    const int64_t count = std::min(lengths[sequence] - offset, wanted);
    piece(sequence, offset, count);
    wanted -= count;
  }
}

void GptSource::Read(int64_t index, Sample& sample) const {
  thread_local std::vector<Piece> pieces;
  pieces.clear();
  // All pieces are asked for before the first is read: they lie anywhere in the file.
  ForEachPiece(index, [this](int64_t sequence, int64_t offset, int64_t count) {
    pieces.push_back({sequence, offset, count});
    store_->Touch(sequence, offset, count);
  });
  reader_.Read(pieces, true, sample);
}

void GptSource::Prefetch(int64_t index) const {
  try {
    ForEachPiece(index, [this](int64_t sequence, int64_t offset, int64_t count) {
      store_->Prefetch(sequence, offset, count);
    });
  } catch (const DataError&) {  // Read will say it
  }
}

}  // namespace muster::data
