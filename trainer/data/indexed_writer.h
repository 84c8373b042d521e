#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/unique_fd.h"
#include "trainer/data/indexed_format.h"

namespace muster::data {

// A file under a temporary name beside its final one. Removed on destruction unless published.
// Throws DataError with the path and the reason (no space, no permission).
class PartialFile {
 public:
  explicit PartialFile(std::string final_path);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  void Write(const void* data, size_t size);
  // Reads from byte `offset` of what was written; short only at the end.
  size_t ReadAt(int64_t offset, void* data, size_t size) const;
  int64_t size() const { return size_; }
  // Makes it durable and gives it its final name.
  void Publish();

 private:
  std::string final_path_;
  std::string path_;
  UniqueFd fd_;
  int64_t size_ = 0;
};

// Writes PREFIX.bin and PREFIX.idx as Megatron does. Memory use does not grow with the data.
// Nothing appears under the final names before Finish. One thread. Throws DataError.
class IndexedWriter {
 public:
  IndexedWriter(const std::string& prefix, TokenType type);

  // Appends documents: their tokens (in the token type), the length of each sequence, the number of
  // sequences of each document (0 is an empty document).
  void Append(std::span<const uint8_t> tokens, std::span<const int32_t> lengths,
              std::span<const int32_t> sequences_per_document);

  // Writes .idx and publishes both files.
  void Finish();

 private:
  std::string prefix_;
  TokenType type_;
  PartialFile bin_;
  PartialFile index_;
  // Parts of .idx that grow with the data, until Finish.
  PartialFile lengths_;
  PartialFile documents_;
  int64_t num_sequences_ = 0;
  int64_t num_documents_ = 0;
};

}  // namespace muster::data
