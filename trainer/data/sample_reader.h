#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "trainer/data/sequence_store.h"

namespace muster::data {

// Which labels count.
struct LossRules {
  int64_t vocab_size = 0;  // 0: not checked
  int64_t eod = -1;
  int64_t pad = -1;
  bool eod_mask_loss = false;
};

// Gathers the tokens of one sample and makes its loss mask: the part that every data order shares.
// The store must outlive it. Any thread.
class SampleReader {
 public:
  SampleReader(const SequenceStore& store, const LossRules& rules) : store_(store), rules_(rules) {}

  // Tokens from `offset` of `sequence` into the front of `out`, at most out.size(); returns how
  // many. Throws DataError on a token that is not below the vocabulary size.
  int64_t Gather(int64_t sequence, int64_t offset, std::span<int64_t> out) const;

  // Fills the rest of `tokens` from `used` on with padding, then sets the mask of each label.
  void Finish(int64_t used, std::span<int64_t> tokens, std::span<float> loss_mask) const;

 private:
  const SequenceStore& store_;
  LossRules rules_;
};

}  // namespace muster::data
