#pragma once

#include <cstddef>
#include <string_view>

namespace muster::tokenizer {

// Checks the normalization table of a SentencePiece model (u32 size of a trie, the trie, texts each
// ended by a zero byte), which the library walks without looking at its bounds. `offset`: of
// `charsmap` in the file. Throws TokenizerError with the offset of what leads out of the table.
// Returns whether it replaces some text that holds a space.
bool CheckCharsmap(std::string_view charsmap, size_t offset);

}  // namespace muster::tokenizer
