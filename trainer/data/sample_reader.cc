#include "trainer/data/sample_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/data/data_error.h"
#include "trainer/data/token_loops.h"

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
  if (rules_.vocab_size > 0 && !AllBelow({out, static_cast<size_t>(count)}, rules_.vocab_size)) {
    const auto wrong = std::find_if(out, out + count,
                                    [this](int64_t t) { return t < 0 || t >= rules_.vocab_size; });
    throw DataError(
        fmt::format("{}: token {} is not below the vocabulary size {}: another tokenizer wrote "
                    "these files, or --vocab-size is too small",
                    store_.Where(sequence, offset + (wrong - out)), *wrong, rules_.vocab_size));
  }
  return used + count;
}

// What each EOD among the inputs means.
void SampleReader::EndDocuments(bool resets, Sample& sample) const {
  const std::span<const int64_t> inputs = sample.tokens.first(sample.loss_mask.size());
  const auto size = static_cast<int64_t>(inputs.size());
  for (int64_t i = FindToken(inputs, 0, rules_.eod); i < size;
       i = FindToken(inputs, i + 1, rules_.eod)) {
    if (rules_.eod_mask_loss) sample.loss_mask[static_cast<size_t>(i)] = 0.0F;
    // The last input has nothing after it here.
    if (!resets || i + 1 == size) continue;
    const auto start = static_cast<int32_t>(i + 1);
    if (rules_.reset_position_ids) sample.position_starts.push_back(start);
    if (rules_.reset_attention_mask) sample.attention_starts.push_back(start);
  }
}

void SampleReader::Finish(int64_t used, Sample& sample) const {
  const std::span<int64_t> tokens = sample.tokens;
  std::fill(tokens.begin() + used, tokens.end(), rules_.pad);
  // A checked token is never negative, so padding below 0 stands behind the others only.
  const bool only_behind = rules_.pad < 0 && rules_.vocab_size > 0;
  if (only_behind) {
    const auto last_label = sample.loss_mask.begin() + std::max<int64_t>(used - 1, 0);
    std::fill(sample.loss_mask.begin(), last_label, 1.0F);
    std::fill(last_label, sample.loss_mask.end(), 0.0F);
  } else {
    MaskLabels(tokens, rules_.pad, sample.loss_mask);
  }
  if (rules_.inter_document_masking) sample.position_starts = sample.attention_starts;
  const bool resets =
      (rules_.reset_position_ids || rules_.reset_attention_mask) && !rules_.inter_document_masking;
  if (rules_.eod_mask_loss || resets) EndDocuments(resets, sample);
  // The embedding must be able to look padding up.
  std::replace(tokens.begin() + (only_behind ? used : 0), tokens.end(), rules_.pad, int64_t{0});
}

}  // namespace muster::data
