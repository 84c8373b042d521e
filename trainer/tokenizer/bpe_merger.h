#pragma once

#include <cstdint>
#include <vector>

#include "trainer/tokenizer/bpe_model.h"

namespace muster::tokenizer {

// Merges the symbols of a word: of all neighbours that merge, the pair of the lowest rank, of equal
// ranks the leftmost, until none merges. Takes time of about n log n and, beyond the symbols, an
// eighth of their memory and some KiB. Throws TokenizerError for more than 2^31 symbols.
void MergeSymbols(const BpeModel& model, std::vector<int32_t>& symbols);

}  // namespace muster::tokenizer
