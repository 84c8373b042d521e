#include "trainer/data/indexed_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "trainer/data/data_error.h"
#include "trainer/data/indexed_dataset.h"
#include "trainer/data/mapped_file.h"

namespace muster::data {
namespace {

constexpr size_t kCopyItems = 1 << 16;
constexpr auto kIndexItem = static_cast<int64_t>(sizeof(int64_t));
constexpr auto kLengthItem = static_cast<int64_t>(sizeof(int32_t));

template <typename T>
void WriteValue(PartialFile& file, T value) {
  file.Write(&value, sizeof(value));
}

// Calls `use` with blocks of the T values that `file` holds.
template <typename T, typename Use>
void ForEachBlock(const PartialFile& file, Use use) {
  std::vector<T> block(kCopyItems);
  for (int64_t offset = 0; offset < file.size();) {
    const size_t bytes = file.ReadAt(offset, block.data(), block.size() * sizeof(T));
    use(std::span<const T>(block.data(), bytes / sizeof(T)));
    offset += static_cast<int64_t>(bytes);
  }
}

int64_t IndexBytes(const WriterState& state) {
  return kIndexHeaderBytes + (kLengthItem + kIndexItem) * state.sequences +
         kIndexItem * (state.documents + 1);
}

// An index never stands beside a .bin that it does not describe.
void RemoveOldIndex(const std::string& prefix) {
  const std::string path = prefix + ".idx";
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    throw DataError("remove " + path + ": " + std::strerror(errno));
  }
}

}  // namespace

IndexedWriter::IndexedWriter(const std::string& prefix, TokenType type,
                             const std::optional<WriterState>& resume)
    : prefix_(prefix),
      type_(type),
      bin_(prefix + ".bin", resume ? resume->bin_bytes : -1),
      index_(prefix + ".idx"),
      lengths_(prefix + ".idx.lengths", resume ? resume->sequences * kLengthItem : -1),
      documents_(prefix + ".idx.documents", resume ? resume->documents * kIndexItem : -1),
      modes_(prefix + ".idx.modes"),
      num_sequences_(resume ? resume->sequences : 0),
      num_documents_(resume ? resume->documents : 0) {}

void IndexedWriter::Append(std::span<const uint8_t> tokens, std::span<const int32_t> lengths,
                           std::span<const int32_t> sequences_per_document) {
  bin_.Write(tokens.data(), tokens.size());
  lengths_.Write(lengths.data(), lengths.size_bytes());
  std::vector<int64_t> ends;
  ends.reserve(sequences_per_document.size());
  for (const int32_t sequences : sequences_per_document) {
    num_sequences_ += sequences;
    ends.push_back(num_sequences_);
  }
  documents_.Write(ends.data(), ends.size() * sizeof(int64_t));
  num_documents_ += static_cast<int64_t>(ends.size());
}

void IndexedWriter::AppendTokens(int fd, int64_t bytes, const std::string& name) {
  bin_.AppendFile(fd, bytes, name);
}

void IndexedWriter::Append(const IndexedWriter& other) {
  bin_.AppendFile(other.bin_.fd(), other.bin_.size(), other.bin_.path());
  lengths_.AppendFile(other.lengths_.fd(), other.lengths_.size(), other.lengths_.path());
  ForEachBlock<int64_t>(other.documents_, [this](std::span<const int64_t> ends) {
    std::vector<int64_t> shifted(ends.begin(), ends.end());
    for (int64_t& end : shifted) end += num_sequences_;
    documents_.Write(shifted.data(), shifted.size() * sizeof(int64_t));
  });
  num_sequences_ += other.num_sequences_;
  num_documents_ += other.num_documents_;
}

void IndexedWriter::Append(const IndexedDataset& dataset, bool with_modes) {
  const std::string bin = dataset.prefix() + ".bin";
  const LengthView lengths = dataset.lengths();
  const int64_t width = TokenBytes(type_);
  if (dataset.token_type() != type_) {
    throw DataError(
        fmt::format("{}.idx, offset {}: its tokens have {} bytes (type code {}), those "
                    "of the files before it {} (code {})",
                    dataset.prefix(), kTokenTypeOffset, TokenBytes(dataset.token_type()),
                    static_cast<int>(dataset.token_type()), width, static_cast<int>(type_)));
  }
  dataset.CheckAll(1);
  std::vector<int32_t> block;
  for (int64_t i = 0; i < lengths.size(); ++i) {
    block.push_back(lengths[i]);
    if (block.size() < kCopyItems && i + 1 < lengths.size()) continue;
    lengths_.Write(block.data(), block.size() * sizeof(int32_t));
    block.clear();
  }
  const UniqueFd fd(::open(bin.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) throw DataError("open " + bin + ": " + std::strerror(errno));
  bin_.AppendFile(fd.get(), dataset.TokensBefore(lengths.size()) * width, bin);
  std::vector<int64_t> ends;
  for (int64_t d = 1; d <= dataset.num_documents(); ++d) {
    ends.push_back(num_sequences_ + dataset.document_begin(d));
    if (ends.size() < kCopyItems && d < dataset.num_documents()) continue;
    documents_.Write(ends.data(), ends.size() * sizeof(int64_t));
    ends.clear();
  }
  if (with_modes) {
    const MappedFile index(dataset.prefix() + ".idx");
    const int64_t at = kIndexHeaderBytes + (kLengthItem + kIndexItem) * lengths.size() +
                       kIndexItem * (dataset.num_documents() + 1);
    if (index.size() != at + lengths.size()) {
      throw DataError(
          fmt::format("{}.idx, offset {}: no modes: it is not multimodal", dataset.prefix(), at));
    }
    modes_.Write(index.data() + at, static_cast<size_t>(lengths.size()));
  }
  num_sequences_ += lengths.size();
  num_documents_ += dataset.num_documents();
}

WriterState IndexedWriter::Sync() {
  bin_.Sync();
  lengths_.Sync();
  documents_.Sync();
  return {bin_.size(), num_sequences_, num_documents_};
}

void IndexedWriter::Prepare() {
  index_.Write(kIndexMagic, sizeof(kIndexMagic));
  WriteValue(index_, kIndexVersion);
  WriteValue(index_, static_cast<uint8_t>(type_));
  WriteValue(index_, static_cast<uint64_t>(num_sequences_));
  WriteValue(index_, static_cast<uint64_t>(num_documents_ + 1));
  index_.AppendFile(lengths_.fd(), lengths_.size(), lengths_.path());
  int64_t start = 0;
  ForEachBlock<int32_t>(lengths_, [&](std::span<const int32_t> lengths) {
    std::vector<int64_t> starts;
    starts.reserve(lengths.size());
    for (const int32_t length : lengths) {
      starts.push_back(start);
      start += length * TokenBytes(type_);
    }
    index_.Write(starts.data(), starts.size() * sizeof(int64_t));
  });
  WriteValue(index_, int64_t{0});
  index_.AppendFile(documents_.fd(), documents_.size(), documents_.path());
  index_.AppendFile(modes_.fd(), modes_.size(), modes_.path());
  bin_.Sync();
  index_.Sync();
}

void IndexedWriter::Publish() {
  RemoveOldIndex(prefix_);
  bin_.Publish();
  index_.Publish();
  for (PartialFile* part : {&lengths_, &documents_, &modes_}) part->Keep(false);
}

void IndexedWriter::CheckLeftover(const std::string& prefix, const WriterState& state) {
  const std::string bin = prefix + ".bin";
  const std::string index = prefix + ".idx";
  PartialFile::CheckLeftover(bin, state.bin_bytes);
  PartialFile::CheckLeftover(index, IndexBytes(state));
  // .bin gets its name first: an .idx beside an unnamed .bin is that of an earlier data set.
  if (PartialFile::HasLeftover(bin) && !PartialFile::HasLeftover(index)) {
    throw DataError(PartialFile::TemporaryPath(index) +
                    ", which the interrupted run wrote, is gone; start again without --resume");
  }
}

void IndexedWriter::PublishLeftover(const std::string& prefix, const WriterState& state) {
  CheckLeftover(prefix, state);
  const std::string bin = prefix + ".bin";
  if (PartialFile::HasLeftover(bin)) RemoveOldIndex(prefix);
  PartialFile::PublishLeftover(bin, state.bin_bytes);
  PartialFile::PublishLeftover(prefix + ".idx", IndexBytes(state));
  for (const char* part : {".idx.lengths", ".idx.documents", ".idx.modes"}) {
    ::unlink(PartialFile::TemporaryPath(prefix + part).c_str());
  }
}

void IndexedWriter::Keep() {
  for (PartialFile* file : {&bin_, &index_, &lengths_, &documents_, &modes_}) file->Keep(true);
}

}  // namespace muster::data
