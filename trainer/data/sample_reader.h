#pragma once

#include <cstdint>
#include <span>

#include "trainer/data/sample_source.h"
#include "trainer/data/sequence_store.h"

namespace muster::data {

// Which labels count, and what a document's end means.
struct SampleRules {
  int64_t vocab_size = 0;  // 0: not checked
  int64_t eod = -1;
  int64_t pad = -1;
  bool eod_mask_loss = false;         // no loss where the input is EOD
  bool reset_position_ids = false;    // positions start again after each EOD
  bool reset_attention_mask = false;  // attention does not look back across an EOD
  // Both at the first token of each sequence, whatever the tokens are; the two resets are then
  // without effect, as in Megatron.
  bool inter_document_masking = false;
};

// Tokens offset .. offset+count of a sequence of the store.
struct Piece {
  int64_t sequence;
  int64_t offset;
  int64_t count;
};

// Makes a sample out of pieces of sequences: the part that every data order shares. The store must
// outlive it. Any thread.
class SampleReader {
 public:
  SampleReader(const SequenceStore& store, const SampleRules& rules)
      : store_(store), rules_(rules) {}

  // Fills the sample with the pieces, which hold no more tokens than it has room for, the rest with
  // padding, and finds what does not count and what starts where. `documents`: a piece does not go
  // on with the one before it. Throws DataError on a token that is not below the vocabulary size,
  // and as SequenceStore::Read does.
  void Read(std::span<const Piece> pieces, bool documents, Sample& sample) const;

 private:
  void ReadTokens(const Piece& piece, int64_t* out) const;
  void Pad(int64_t used, Sample& sample) const;
  void Finish(int64_t used, Sample& sample) const;
  void EndDocuments(bool resets, Sample& sample) const;

  const SequenceStore& store_;
  SampleRules rules_;
};

}  // namespace muster::data
