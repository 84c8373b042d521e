#pragma once

#include <cstdint>
#include <string>

#include "common/unique_fd.h"
#include "trainer/data/mapped_file.h"
#include "trainer/data/sequence_store.h"

namespace muster::data {

// PREFIX.bin and PREFIX.idx as Megatron's tools write them. Opening looks at the header, the file
// sizes and the last entries only (any number of documents opens at once); every read checks its
// own entry.
class IndexedDataset : public SequenceStore {
 public:
  // `map_bin` maps .bin; otherwise each read is a pread. Throws DataError with file, byte offset
  // and reason.
  explicit IndexedDataset(const std::string& prefix, bool map_bin = true);

  LengthView lengths() const override { return lengths_; }
  void Read(int64_t sequence, int64_t offset, int64_t count, int64_t* out) const override;
  std::string Where(int64_t sequence, int64_t offset) const override;

  TokenType token_type() const { return token_type_; }
  int64_t num_documents() const { return num_document_entries_ - 1; }
  // Sequences of document d: document_begin(d) .. document_begin(d + 1); 0 <= d <= num_documents().
  int64_t document_begin(int64_t d) const;
  const std::string& prefix() const { return prefix_; }

 private:
  void CheckIndex();
  void OpenBin(bool map_bin);
  int64_t start(int64_t sequence) const;

  std::string prefix_;
  MappedFile index_;
  MappedFile bin_;
  UniqueFd bin_fd_;  // instead of bin_
  int64_t bin_size_ = 0;
  TokenType token_type_ = TokenType::kInt32;
  int64_t num_document_entries_ = 1;
  LengthView lengths_;
  const uint8_t* starts_ = nullptr;
  const uint8_t* documents_ = nullptr;
};

}  // namespace muster::data
