#pragma once

#include <cstdint>
#include <memory>

#include "trainer/data/sequence_store.h"
#include "trainer/data/split.h"

namespace muster::data {

// The tokens of a split as one row, in file order. No memory of its own: a place is found by binary
// search in the store's books. Constructed, then immutable: any thread.
class TokenStream {
 public:
  struct Place {
    int64_t sequence;
    int64_t offset;
  };

  // `split` in sequences. Throws DataError as SequenceStore::TokensBefore does, and when they run
  // backwards.
  TokenStream(std::shared_ptr<const SequenceStore> store, Range split);

  int64_t size() const { return end_ - begin_; }
  // Where token `position` is, 0 <= position < size(). Throws DataError when the books disagree
  // with the length of the sequence found.
  Place Find(int64_t position) const;
  // Calls piece(sequence, offset, length) for the pieces of tokens first .. first+count.
  template <typename Piece>
  void ForEachPiece(int64_t first, int64_t count, Piece piece) const {
    Place place = Find(first);
    while (true) {
      const int64_t there = store_->lengths()[place.sequence] - place.offset;
      const int64_t taken = there < count ? there : count;
      piece(place.sequence, place.offset, taken);
      count -= taken;
      if (count == 0) return;
      first += taken;
      place = Next(place.sequence, first);
    }
  }

 private:
  // The sequence after `sequence` that holds token `position`.
  Place Next(int64_t sequence, int64_t position) const;
  Place Check(int64_t sequence, int64_t position) const;

  std::shared_ptr<const SequenceStore> store_;
  Range split_;
  int64_t begin_ = 0;
  int64_t end_ = 0;
};

}  // namespace muster::data
