#include "trainer/data/indexed_dataset.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "trainer/data/data_error.h"

namespace muster::data {
namespace {

template <typename T>
void Widen(const uint8_t* from, int64_t count, int64_t* out) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] = LoadUnaligned<T>(from + i * static_cast<int64_t>(sizeof(T)));
  }
}

void Decode(TokenType type, const uint8_t* from, int64_t count, int64_t* out) {
  switch (type) {
    case TokenType::kUint8:
      return Widen<uint8_t>(from, count, out);
    case TokenType::kInt8:
      return Widen<int8_t>(from, count, out);
    case TokenType::kInt16:
      return Widen<int16_t>(from, count, out);
    case TokenType::kUint16:
      return Widen<uint16_t>(from, count, out);
    case TokenType::kInt32:
      return Widen<int32_t>(from, count, out);
    case TokenType::kInt64:
      return Widen<int64_t>(from, count, out);
  }
}

}  // namespace

IndexedDataset::IndexedDataset(const std::string& prefix, bool map_bin) : prefix_(prefix) {
  try {
    index_ = MappedFile(prefix + ".idx");
  } catch (const DataError& error) {
    throw DataError(fmt::format(
        "{} (a data path is the common prefix of a .bin and an .idx file, without the suffix)",
        error.what()));
  }
  CheckIndex();
  OpenBin(map_bin);
  const int64_t count = lengths_.size();
  if (count > 0) {
    const int64_t end = start(count - 1) + lengths_[count - 1] * TokenBytes(token_type_);
    if (start(count - 1) < 0 || lengths_[count - 1] < 0 || end > bin_size_) {
      throw DataError(fmt::format(
          "{0}.bin has {1} bytes, but {0}.idx (last sequence, offset {2}) needs {3}: the .bin is "
          "truncated, or the two files do not belong together",
          prefix_, bin_size_, (starts_ - index_.data()) + (count - 1) * 8, end));
    }
  }
}

void IndexedDataset::CheckIndex() {
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
  const int64_t token_bytes = TokenBytes(token_type_);
  if (token_bytes == 0) {
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
  const int64_t last = document_begin(num_document_entries_ - 1);
  if (document_begin(0) != 0 || last != lengths_.size()) {
    throw DataError(fmt::format(
        "{}, offset {}: the document entries run from {} to {}, expected 0 to {} (the number of "
        "sequences)",
        path, documents_ - at, document_begin(0), last, lengths_.size()));
  }
}

void IndexedDataset::OpenBin(bool map_bin) {
  const std::string path = prefix_ + ".bin";
  if (map_bin) {
    bin_ = MappedFile(path);
    bin_size_ = bin_.size();
    return;
  }
  bin_fd_.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!bin_fd_) throw DataError("open " + path + ": " + std::strerror(errno));
  struct stat info {};
  if (::fstat(bin_fd_.get(), &info) != 0) {
    throw DataError("stat " + path + ": " + std::strerror(errno));
  }
  bin_size_ = info.st_size;
}

int64_t IndexedDataset::start(int64_t sequence) const {
  return LoadUnaligned<int64_t>(starts_ + sequence * 8);
}

int64_t IndexedDataset::document_begin(int64_t d) const {
  return LoadUnaligned<int64_t>(documents_ + d * 8);
}

void IndexedDataset::Read(int64_t sequence, int64_t offset, int64_t count, int64_t* out) const {
  if (sequence < 0 || sequence >= lengths_.size() || offset < 0 || count < 0 ||
      offset + count > lengths_[sequence]) {
    throw DataError(fmt::format("{}.idx: no tokens {} to {} in sequence {}", prefix_, offset,
                                offset + count, sequence));
  }
  const int64_t width = TokenBytes(token_type_);
  const int64_t first = start(sequence);
  if (first < 0 || first > bin_size_ || offset + count > (bin_size_ - first) / width) {
    throw DataError(fmt::format(
        "{0}.idx, offset {1}: sequence {2} starts at byte {3} and has {4} tokens, beyond the {5} "
        "bytes of {0}.bin",
        prefix_, (starts_ - index_.data()) + sequence * 8, sequence, first, lengths_[sequence],
        bin_size_));
  }
  const int64_t begin = first + offset * width;
  if (bin_.data() != nullptr || count == 0) {
    Decode(token_type_, bin_.data() + begin, count, out);
    return;
  }
  std::vector<uint8_t> buffer(static_cast<size_t>(count * width));
  for (size_t done = 0; done < buffer.size();) {
    const ssize_t n = ::pread(bin_fd_.get(), buffer.data() + done, buffer.size() - done,
                              begin + static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      throw DataError(fmt::format("read {}.bin, offset {}: {}", prefix_,
                                  begin + static_cast<int64_t>(done),
                                  n < 0 ? std::strerror(errno) : "the file became shorter"));
    }
    done += static_cast<size_t>(n);
  }
  Decode(token_type_, buffer.data(), count, out);
}

std::string IndexedDataset::Where(int64_t sequence, int64_t offset) const {
  return fmt::format("{}.bin, offset {} (sequence {}, token {})", prefix_,
                     start(sequence) + offset * TokenBytes(token_type_), sequence, offset);
}

}  // namespace muster::data
