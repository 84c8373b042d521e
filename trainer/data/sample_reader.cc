#include "trainer/data/sample_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/data/data_error.h"

namespace muster::data {

void SampleReader::Start(Sample& sample) {
  sample.attention_starts.clear();
  sample.position_starts.clear();
}

int64_t SampleReader::Append(int64_t sequence, int64_t offset, int64_t used, int64_t limit,
                             bool new_document, Sample& sample) const {
  const int64_t available = store_.lengths()[sequence] - offset;
  const int64_t count = std::min(available, limit - used);
  int64_t* const out = sample.tokens.data() + used;
  store_.Read(sequence, offset, count, out);
  // The last token is a label only; a document that begins there has no input in this sample.
  const auto inputs = static_cast<int64_t>(sample.loss_mask.size());
  if (rules_.inter_document_masking && new_document && count > 0 && used > 0 && used < inputs) {
    sample.attention_starts.push_back(static_cast<int32_t>(used));
  }
  if (rules_.vocab_size <= 0) return used + count;
  for (int64_t i = 0; i < count; ++i) {
    if (out[i] < 0 || out[i] >= rules_.vocab_size) {
      throw DataError(
          fmt::format("{}: token {} is not below the vocabulary size {}: another tokenizer wrote "
                      "these files, or --vocab-size is too small",
                      store_.Where(sequence, offset + i), out[i], rules_.vocab_size));
    }
  }
  return used + count;
}

void SampleReader::Finish(int64_t used, Sample& sample) const {
  const std::span<int64_t> tokens = sample.tokens;
  std::fill(tokens.begin() + used, tokens.end(), rules_.pad);
  const size_t inputs = sample.loss_mask.size();
  for (size_t i = 0; i < inputs; ++i) {
    const bool after_eod = rules_.eod_mask_loss && tokens[i] == rules_.eod;
    sample.loss_mask[i] = after_eod || tokens[i + 1] == rules_.pad ? 0.0F : 1.0F;
  }
  if (rules_.inter_document_masking) {
    sample.position_starts = sample.attention_starts;
  } else if (rules_.reset_position_ids || rules_.reset_attention_mask) {
    for (size_t i = 0; i + 1 < inputs; ++i) {
      if (tokens[i] != rules_.eod) continue;
      const auto start = static_cast<int32_t>(i + 1);
      if (rules_.reset_position_ids) sample.position_starts.push_back(start);
      if (rules_.reset_attention_mask) sample.attention_starts.push_back(start);
    }
  }
  // The embedding must be able to look padding up.
  std::replace(tokens.begin(), tokens.end(), rules_.pad, int64_t{0});
}

}  // namespace muster::data
