#include "trainer/data/indexed_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "trainer/data/data_error.h"
#include "trainer/data/parallel_for.h"
#include "trainer/data/token_loops.h"

namespace muster::data {
namespace {

// Entries of each array that opening looks at.
constexpr int64_t kSampledEntries = 256;

}  // namespace

IndexedDataset::IndexedDataset(const std::string& prefix, bool map_bin) : prefix_(prefix) {
  try {
    index_ = MappedFile(prefix + ".idx");
  } catch (const DataError& error) {
    throw DataError(fmt::format(
        "{} (a data path is the common prefix of a .bin and an .idx file, without the suffix)",
        error.what()));
  }
  CheckHeader();
  bin_ = map_bin ? MapBin(prefix + ".bin") : OpenBin(prefix + ".bin");
  CheckEnds();
  CheckSome();
}

void IndexedDataset::CheckHeader() {
  const std::string path = prefix_ + ".idx";
  const int64_t size = index_.size();
  const uint8_t* at = index_.data();
  if (size < static_cast<int64_t>(sizeof(kIndexMagic)) ||
      std::memcmp(at, kIndexMagic, sizeof(kIndexMagic)) != 0) {
    throw DataError(path + ", offset 0: not a Megatron index (no MMIDIDX magic)");
  }
  if (size < kIndexHeaderBytes) {
    throw DataError(fmt::format("{}, offset {}: the file ends inside the header ({} bytes)", path,
                                size, kIndexHeaderBytes));
  }
  const auto version = LoadUnaligned<uint64_t>(at + kVersionOffset);
  if (version != kIndexVersion) {
    throw DataError(
        fmt::format("{}, offset {}: version {}, expected 1", path, kVersionOffset, version));
  }
  token_type_ = static_cast<TokenType>(at[kTokenTypeOffset]);
  token_bytes_ = TokenBytes(token_type_);
  if (token_bytes_ == 0) {
    throw DataError(fmt::format(
        "{}, offset {}: token type code {} is none of 1 (u8), 2 (i8), 3 (i16), 4 (i32), 5 (i64), "
        "8 (u16)",
        path, kTokenTypeOffset, at[kTokenTypeOffset]));
  }
  const auto sequences = LoadUnaligned<uint64_t>(at + kSequenceCountOffset);
  const auto entries = LoadUnaligned<uint64_t>(at + kDocumentCountOffset);
  // Both bounds keep the products below from overflowing.
  const auto room = static_cast<uint64_t>(size);
  const bool plausible = sequences <= room / 12 && entries <= room / 8 && entries >= 1;
  const uint64_t expected = kIndexHeaderBytes + 12 * sequences + 8 * entries;
  // A multimodal index has one more byte a sequence, which says nothing about its tokens.
  if (!plausible || (room != expected && room != expected + sequences)) {
    throw DataError(fmt::format(
        "{}, offset {}: {} sequences and {} document entries do not fit a file of {} bytes: "
        "truncated or damaged",
        path, kSequenceCountOffset, sequences, entries, size));
  }
  lengths_ = LengthView(at + kIndexHeaderBytes, static_cast<int64_t>(sequences));
  starts_ = at + kIndexHeaderBytes + 4 * sequences;
  documents_ = starts_ + 8 * sequences;
  num_document_entries_ = static_cast<int64_t>(entries);
}

void IndexedDataset::CheckEnds() const {
  const int64_t last = document_begin(num_document_entries_ - 1);
  if (document_begin(0) != 0 || last != lengths_.size()) {
    throw DataError(fmt::format(
        "{}.idx, offset {}: the document entries run from {} to {}, expected 0 to {} (the number "
        "of sequences)",
        prefix_, OffsetOf(documents_), document_begin(0), last, lengths_.size()));
  }
  const int64_t count = lengths_.size();
  int64_t end = count == 0 ? 0 : -1;
  // Bounded first, so that the sum can't overflow.
  if (count > 0 && start(count - 1) >= 0 && start(count - 1) <= bin_->size()) {
    end = start(count - 1) + lengths_[count - 1] * token_bytes_;
  }
  if (end != bin_->size()) {
    throw DataError(fmt::format(
        "{0}.bin has {1} bytes, but {0}.idx, offset {2} (the last sequence starts at byte {3} and "
        "has {4} tokens of {5} bytes), says otherwise: one of them is truncated, or the two do not "
        "belong together",
        prefix_, bin_->size(),
        count > 0 ? OffsetOf(starts_) + (count - 1) * 8 : kSequenceCountOffset,
        count > 0 ? start(count - 1) : 0, count > 0 ? lengths_[count - 1] : 0, token_bytes_));
  }
}

void IndexedDataset::CheckSome() const {
  const auto for_some = [](int64_t count, auto use) {
    const int64_t steps = std::min(count, kSampledEntries);
    for (int64_t k = 0; k < steps; ++k) use(count / steps * k);
    if (count > 0) use(count - 1);
  };
  // All pages at once from a cold disk, instead of one after the other.
  for_some(lengths_.size(), [this](int64_t i) {
    index_.Prefetch(kIndexHeaderBytes + 4 * i, 4);
    index_.Prefetch(OffsetOf(starts_) + 8 * i, 8);
  });
  for_some(num_documents(),
           [this](int64_t d) { index_.Prefetch(OffsetOf(documents_) + 8 * d, 16); });
  for_some(lengths_.size(), [this](int64_t i) { CheckSequence(i); });
  for_some(num_documents(), [this](int64_t d) { SequencesOf(d); });
}

void IndexedDataset::CheckAll(int threads) const {
  ParallelFor(lengths_.size(), threads, [this](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) CheckSequence(i);
  });
  ParallelFor(num_documents(), threads, [this](int, int64_t begin, int64_t end) {
    for (int64_t d = begin; d < end; ++d) SequencesOf(d);
  });
}

void IndexedDataset::CheckSequence(int64_t i) const {
  const int64_t first = start(i);
  const int64_t bytes = lengths_[i] * token_bytes_;
  const int64_t next = i + 1 < lengths_.size() ? start(i + 1) : bin_->size();
  // In this order nothing can overflow.
  if (first >= 0 && first <= bin_->size() && bytes >= 0 && bytes <= bin_->size() - first &&
      first + bytes == next) {
    return;
  }
  throw DataError(fmt::format(
      "{0}.idx, offset {1}: sequence {2} has {3} tokens of {4} bytes (its length is at offset {5}) "
      "and starts at byte {6} of {0}.bin, but {7} {8}: the .idx is damaged, or not of this .bin",
      prefix_, OffsetOf(starts_) + i * 8, i, lengths_[i], token_bytes_, kIndexHeaderBytes + i * 4,
      first, i + 1 < lengths_.size() ? "the next one starts at byte" : "the .bin ends at byte",
      next));
}

int64_t IndexedDataset::start(int64_t sequence) const {
  return LoadUnaligned<int64_t>(starts_ + sequence * 8);
}

int64_t IndexedDataset::document_begin(int64_t d) const {
  return LoadUnaligned<int64_t>(documents_ + d * 8);
}

Range IndexedDataset::SequencesOf(int64_t document) const {
  const Range range{document_begin(document), document_begin(document + 1)};
  if (range.begin < 0 || range.end < range.begin || range.end > lengths_.size()) {
    throw DataError(fmt::format("{}.idx, offset {}: document {} spans the sequences {} to {} of {}",
                                prefix_, OffsetOf(documents_) + document * 8, document, range.begin,
                                range.end, lengths_.size()));
  }
  return range;
}

int64_t IndexedDataset::TokensBefore(int64_t sequence) const {
  const int64_t bytes = sequence < lengths_.size() ? start(sequence) : bin_->size();
  if (bytes < 0 || bytes > bin_->size() || bytes % token_bytes_ != 0) {
    throw DataError(fmt::format(
        "{0}.idx, offset {1}: sequence {2} starts at byte {3}; {0}.bin has {4} bytes, {5} a token",
        prefix_, OffsetOf(starts_) + sequence * 8, sequence, bytes, bin_->size(), token_bytes_));
  }
  return bytes / token_bytes_;
}

uint64_t IndexedDataset::Read(int64_t sequence, int64_t offset, int64_t count, int64_t* out) const {
  if (sequence < 0 || sequence >= lengths_.size()) {
    throw DataError(
        fmt::format("{}.idx has no sequence {}; it has {}", prefix_, sequence, lengths_.size()));
  }
  CheckSequence(sequence);
  if (offset < 0 || count < 0 || offset > lengths_[sequence] - count) {
    throw DataError(fmt::format("{}.idx: no tokens {} to {} in sequence {}", prefix_, offset,
                                offset + count, sequence));
  }
  if (count == 0) return 0;
  thread_local std::vector<uint8_t> buffer;
  const uint8_t* bytes =
      bin_->Fetch(start(sequence) + offset * token_bytes_, count * token_bytes_, buffer);
  return DecodeTokens(token_type_, bytes, count, out);
}

int64_t IndexedDataset::FindTokens(int64_t sequence, int64_t offset, int64_t count) const {
  const int64_t first = start(sequence);
  // In this order nothing can overflow.
  if (first < 0 || first > bin_->size() || count <= 0) return -1;
  return (offset + count) * token_bytes_ <= bin_->size() - first ? first + offset * token_bytes_
                                                                 : -1;
}

void IndexedDataset::Touch(int64_t sequence, int64_t offset, int64_t count) const {
  const int64_t place = FindTokens(sequence, offset, count);
  if (place >= 0) bin_->Touch(place, count * token_bytes_);
}

void IndexedDataset::Prefetch(int64_t sequence, int64_t offset, int64_t count) const {
  const int64_t place = FindTokens(sequence, offset, count);
  if (place >= 0) bin_->Prefetch(place, count * token_bytes_);
}

std::string IndexedDataset::Where(int64_t sequence, int64_t offset) const {
  const int64_t at = sequence < lengths_.size() ? start(sequence) : bin_->size();
  return fmt::format("{}.bin, offset {} (sequence {}, token {})", prefix_,
                     at + offset * token_bytes_, sequence, offset);
}

std::string IndexedDataset::WhereLength(int64_t sequence) const {
  return fmt::format("{}.idx, offset {}", prefix_, kIndexHeaderBytes + sequence * 4);
}

}  // namespace muster::data
