#include "trainer/data/token_stream.h"

#include <fmt/format.h>

#include <utility>

#include "trainer/data/data_error.h"

namespace muster::data {

TokenStream::TokenStream(std::shared_ptr<const SequenceStore> store, Range split)
    : store_(std::move(store)), split_(split) {
  begin_ = store_->TokensBefore(split.begin);
  end_ = store_->TokensBefore(split.end);
  if (end_ < begin_) {
    throw DataError(fmt::format("{}: the sequences {} to {} hold {} tokens by their starts",
                                store_->Where(split.begin, 0), split.begin, split.end,
                                end_ - begin_));
  }
}

TokenStream::Place TokenStream::Check(int64_t sequence, int64_t position) const {
  const int64_t offset = begin_ + position - store_->TokensBefore(sequence);
  if (offset < 0 || offset >= store_->lengths()[sequence]) {
    throw DataError(fmt::format(
        "{}: by its start this sequence should hold token {} of the split as its token {}, but it "
        "has {}: the .idx is damaged, or its sequences are not in the order of the .bin (then only "
        "--data-order shuffled with --index-order megatron can read it)",
        store_->Where(sequence, 0), position, offset, store_->lengths()[sequence]));
  }
  return {sequence, offset};
}

TokenStream::Place TokenStream::Find(int64_t position) const {
  // The last sequence that starts at or before it; empty ones lie before the one that holds it.
  int64_t low = split_.begin;
  int64_t high = split_.end;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (store_->TokensBefore(middle) <= begin_ + position ? low : high) = middle;
  }
  return Check(low, position);
}

TokenStream::Place TokenStream::Next(int64_t sequence, int64_t position) const {
  do {
    ++sequence;
  } while (sequence < split_.end - 1 && store_->lengths()[sequence] == 0);
  if (sequence >= split_.end) {
    throw DataError(fmt::format("{}: the split ends before its token {}",
                                store_->Where(split_.end - 1, 0), position));
  }
  return Check(sequence, position);
}

}  // namespace muster::data
