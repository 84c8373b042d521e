#include "trainer/data/indexed_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "trainer/data/data_error.h"

namespace muster::data {
namespace {

constexpr size_t kCopyItems = 1 << 16;

[[noreturn]] void Fail(const std::string& what, const std::string& path) {
  throw DataError(what + " " + path + ": " + std::strerror(errno));
}

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

}  // namespace

PartialFile::PartialFile(std::string final_path)
    : final_path_(std::move(final_path)), path_(fmt::format("{}.{}.tmp", final_path_, ::getpid())) {
  fd_.reset(::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd_) Fail("create", path_);
}

PartialFile::~PartialFile() {
  if (fd_) ::unlink(path_.c_str());
}

void PartialFile::Write(const void* data, size_t size) {
  const auto* at = static_cast<const uint8_t*>(data);
  size_ += static_cast<int64_t>(size);
  while (size > 0) {
    const ssize_t n = ::write(fd_.get(), at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) Fail("write", path_);
    at += n;
    size -= static_cast<size_t>(n);
  }
}

size_t PartialFile::ReadAt(int64_t offset, void* data, size_t size) const {
  auto* at = static_cast<uint8_t*>(data);
  size_t done = 0;
  while (done < size) {
    const ssize_t n =
        ::pread(fd_.get(), at + done, size - done, offset + static_cast<int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) Fail("read", path_);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

void PartialFile::Publish() {
  if (::fsync(fd_.get()) != 0) Fail("sync", path_);
  if (::rename(path_.c_str(), final_path_.c_str()) != 0) Fail("rename to " + final_path_, path_);
  fd_.reset();
}

IndexedWriter::IndexedWriter(const std::string& prefix, TokenType type)
    : prefix_(prefix),
      type_(type),
      bin_(prefix + ".bin"),
      index_(prefix + ".idx"),
      lengths_(prefix + ".idx.lengths"),
      documents_(prefix + ".idx.documents") {
  WriteValue(documents_, int64_t{0});
}

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

void IndexedWriter::Finish() {
  index_.Write(kIndexMagic, sizeof(kIndexMagic));
  WriteValue(index_, kIndexVersion);
  WriteValue(index_, static_cast<uint8_t>(type_));
  WriteValue(index_, static_cast<uint64_t>(num_sequences_));
  WriteValue(index_, static_cast<uint64_t>(num_documents_ + 1));
  ForEachBlock<int32_t>(lengths_, [this](std::span<const int32_t> lengths) {
    index_.Write(lengths.data(), lengths.size_bytes());
  });
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
  ForEachBlock<int64_t>(documents_, [this](std::span<const int64_t> documents) {
    index_.Write(documents.data(), documents.size_bytes());
  });
  // An index never stands beside a .bin that it does not describe.
  if (::unlink((prefix_ + ".idx").c_str()) != 0 && errno != ENOENT) {
    Fail("remove", prefix_ + ".idx");
  }
  bin_.Publish();
  index_.Publish();
}

}  // namespace muster::data
