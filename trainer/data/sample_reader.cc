#include "trainer/data/sample_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/data/data_error.h"
#include "trainer/data/token_loops.h"

namespace muster::data {

void SampleReader::ReadTokens(const Piece& piece, int64_t* out) const {
  const uint64_t largest = store_.Read(piece.sequence, piece.offset, piece.count, out);
  if (rules_.vocab_size == 0 || largest < static_cast<uint64_t>(rules_.vocab_size)) return;
  const auto wrong = std::find_if(out, out + piece.count,
                                  [this](int64_t t) { return t < 0 || t >= rules_.vocab_size; });
  throw DataError(fmt::format(
      "{}: token {} is not below the vocabulary size {}: another tokenizer wrote "
      "these files, or --vocab-size is too small",
      store_.Where(piece.sequence, piece.offset + (wrong - out)), *wrong, rules_.vocab_size));
}

void SampleReader::Read(std::span<const Piece> pieces, bool documents, Sample& sample) const {
  sample.uncounted.clear();
  sample.attention_starts.clear();
  sample.position_starts.clear();
  // The last token is a label only; a document that begins there has no input in this sample.
  const auto inputs = static_cast<int64_t>(sample.tokens.size()) - 1;
  int64_t used = 0;
  for (const Piece& piece : pieces) {
    ReadTokens(piece, sample.tokens.data() + used);
    if (rules_.inter_document_masking && documents && piece.count > 0 && used > 0 &&
        used < inputs) {
      sample.attention_starts.push_back(static_cast<int32_t>(used));
    }
    used += piece.count;
  }
  Finish(used, sample);
}

// What each EOD among the inputs means.
void SampleReader::EndDocuments(bool resets, Sample& sample) const {
  const std::span<const int64_t> inputs = sample.tokens.first(sample.tokens.size() - 1);
  const auto size = static_cast<int64_t>(inputs.size());
  for (int64_t i = FindToken(inputs, 0, rules_.eod); i < size;
       i = FindToken(inputs, i + 1, rules_.eod)) {
    if (rules_.eod_mask_loss) sample.uncounted.push_back(static_cast<int32_t>(i));
    // The last input has nothing after it here.
    if (!resets || i + 1 == size) continue;
    const auto start = static_cast<int32_t>(i + 1);
    if (rules_.reset_position_ids) sample.position_starts.push_back(start);
    if (rules_.reset_attention_mask) sample.attention_starts.push_back(start);
  }
}

// Pads the tokens from `used` on; no label that is padding counts, wherever it stands.
void SampleReader::Pad(int64_t used, Sample& sample) const {
  const std::span<int64_t> tokens = sample.tokens;
  std::fill(tokens.begin() + used, tokens.end(), rules_.pad);
  const int64_t text = std::max<int64_t>(used, 1);  // labels from here on are all padding
  // A checked token is never negative: then no label of the text is padding either.
  if (rules_.pad >= 0 || rules_.vocab_size == 0) {
    const std::span<const int64_t> labels = tokens.first(static_cast<size_t>(text));
    for (int64_t i = FindToken(labels, 1, rules_.pad); i < text;
         i = FindToken(labels, i + 1, rules_.pad)) {
      sample.uncounted.push_back(static_cast<int32_t>(i - 1));
    }
  }
  for (auto i = text; i < static_cast<int64_t>(tokens.size()); ++i) {
    sample.uncounted.push_back(static_cast<int32_t>(i - 1));
  }
}

// Pads what the pieces left from `used` on, then finds what does not count and what starts where.
void SampleReader::Finish(int64_t used, Sample& sample) const {
  Pad(used, sample);
  const size_t padded = sample.uncounted.size();
  if (rules_.inter_document_masking) sample.position_starts = sample.attention_starts;
  const bool resets =
      (rules_.reset_position_ids || rules_.reset_attention_mask) && !rules_.inter_document_masking;
  if (rules_.eod_mask_loss || resets) EndDocuments(resets, sample);
  // The embedding must be able to look padding up.
  for (size_t k = 0; k < padded; ++k) {
    sample.tokens[static_cast<size_t>(sample.uncounted[k]) + 1] = 0;
  }
  if (sample.tokens.front() == rules_.pad) sample.tokens.front() = 0;
}

}  // namespace muster::data
