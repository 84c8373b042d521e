#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "trainer/data/gpt_index.h"
#include "trainer/data/sample_reader.h"
#include "trainer/data/sample_source.h"
#include "trainer/data/sequence_store.h"

namespace muster::data {

// Megatron's GPTDataset: samples of a store in shuffled order.
class GptSource : public SampleSource {
 public:
  GptSource(std::shared_ptr<const SequenceStore> store, GptIndex index, int64_t seq_length,
            bool extra_token, const LossRules& rules);

  int64_t size() const override { return index_.num_samples(); }
  int64_t seq_length() const override { return seq_length_; }
  void Get(int64_t index, std::span<int64_t> tokens, std::span<float> loss_mask) const override;

  const GptIndex& index() const { return index_; }

 private:
  std::shared_ptr<const SequenceStore> store_;
  GptIndex index_;
  int64_t seq_length_;
  bool extra_token_;
  SampleReader reader_;
};

}  // namespace muster::data
