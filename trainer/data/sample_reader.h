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

// Makes a sample out of pieces of sequences: the part that every data order shares. The store must
// outlive it. Any thread.
class SampleReader {
 public:
  SampleReader(const SequenceStore& store, const SampleRules& rules)
      : store_(store), rules_(rules) {}

  // Empties a sample.
  static void Start(Sample& sample);

  // Writes tokens from `offset` of `sequence` behind the sample's first `used` ones, up to `limit`
  // in all; returns how many there are then. `new_document`: the piece does not go on with the one
  // before it. Throws DataError on a token that is not below the vocabulary size, and as
  // SequenceStore::Read does.
  int64_t Append(int64_t sequence, int64_t offset, int64_t used, int64_t limit, bool new_document,
                 Sample& sample) const;

  // Fills the rest of the tokens from `used` on with padding, then makes mask and starts.
  void Finish(int64_t used, Sample& sample) const;

 private:
  void EndDocuments(bool resets, Sample& sample) const;

  const SequenceStore& store_;
  SampleRules rules_;
};

}  // namespace muster::data
