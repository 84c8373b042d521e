#pragma once

#include <cstdint>
#include <memory>

#include "trainer/data/gpt_index.h"
#include "trainer/data/sample_reader.h"
#include "trainer/data/sample_source.h"
#include "trainer/data/sequence_store.h"

namespace muster::data {

// Megatron's GPTDataset: samples of a store in shuffled order. An index that came from a file is
// checked where it is read: an entry that points nowhere is a DataError with its place.
class GptSource : public SampleSource {
 public:
  GptSource(std::shared_ptr<const SequenceStore> store, GptIndex index, int64_t seq_length,
            bool extra_token, const SampleRules& rules);

  int64_t size() const override { return index_.num_samples(); }
  int64_t seq_length() const override { return seq_length_; }
  void Read(int64_t index, Sample& sample) const override;
  void Prefetch(int64_t index) const override;

  const GptIndex& index() const { return index_; }

 private:
  // Calls piece(sequence, offset, length) for the pieces of sample `index`, `wanted` tokens in all
  // unless the documents end before.
  template <typename Piece>
  void ForEachPiece(int64_t index, Piece piece) const;

  std::shared_ptr<const SequenceStore> store_;
  GptIndex index_;
  int64_t seq_length_;
  bool extra_token_;
  SampleReader reader_;
};

}  // namespace muster::data
