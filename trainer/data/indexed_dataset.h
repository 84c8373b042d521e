#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "trainer/data/bin_reader.h"
#include "trainer/data/mapped_file.h"
#include "trainer/data/sequence_store.h"
#include "trainer/data/split.h"

namespace muster::data {

// PREFIX.bin and PREFIX.idx as Megatron's tools write them. Opening takes the same time for any
// number of documents: it checks the header, both file sizes against each other, the ends of the
// arrays and a sample of their entries. Every read checks the entries that it uses, so a damaged
// one is found before its tokens are.
class IndexedDataset : public SequenceStore {
 public:
  // `map_bin` maps .bin; otherwise each read is a pread. Throws DataError with file, byte offset
  // and reason.
  explicit IndexedDataset(const std::string& prefix, bool map_bin = true);

  LengthView lengths() const override { return lengths_; }
  int64_t TokensBefore(int64_t sequence) const override;
  uint64_t Read(int64_t sequence, int64_t offset, int64_t count, int64_t* out) const override;
  void Touch(int64_t sequence, int64_t offset, int64_t count) const override;
  void Prefetch(int64_t sequence, int64_t offset, int64_t count) const override;
  std::string Where(int64_t sequence, int64_t offset) const override;
  std::string WhereLength(int64_t sequence) const override;

  // Checks every entry on `threads` threads: each length and start against the next start, each
  // document against the next. Throws DataError for the first wrong one that it meets.
  void CheckAll(int threads) const;

  TokenType token_type() const { return token_type_; }
  int64_t num_documents() const { return num_document_entries_ - 1; }
  // Sequences of document d: document_begin(d) .. document_begin(d + 1); 0 <= d <= num_documents().
  int64_t document_begin(int64_t d) const;
  // The same, checked: throws DataError when they are no range of sequences.
  Range SequencesOf(int64_t document) const;
  const std::string& prefix() const { return prefix_; }

 private:
  void CheckHeader();
  void CheckEnds() const;
  void CheckSome() const;
  // Throws unless sequence i has a length of 0 or more, starts within .bin, and ends where the next
  // one starts.
  void CheckSequence(int64_t i) const;
  int64_t start(int64_t sequence) const;
  // Where these tokens are in .bin; -1: nowhere.
  int64_t FindTokens(int64_t sequence, int64_t offset, int64_t count) const;
  int64_t OffsetOf(const uint8_t* entry) const { return entry - index_.data(); }

  std::string prefix_;
  MappedFile index_;
  std::unique_ptr<BinReader> bin_;
  TokenType token_type_ = TokenType::kInt32;
  int64_t token_bytes_ = 0;
  int64_t num_document_entries_ = 1;
  LengthView lengths_;
  const uint8_t* starts_ = nullptr;
  const uint8_t* documents_ = nullptr;
};

}  // namespace muster::data
