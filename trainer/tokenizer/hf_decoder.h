#pragma once

#include <string>

#include "trainer/tokenizer/json_view.h"

namespace muster::tokenizer {

// How tokens of a vocabulary in characters become text again ("decoder" of tokenizer.json).
struct TokenDecoder {
  std::string marker;              // stands for a space; empty: none
  bool byte_fallback = false;      // "<0x0A>" is the byte 10
  bool strip_space = false;        // one space at the start of a text is not of the text
  bool strip_first_token = false;  // nor is any marker of its first token

  bool IsByte(const std::string& token) const;
  std::string TextOf(const std::string& token) const;
};

// Throws TokenizerError with the place of what is wrong or not supported.
TokenDecoder LoadDecoder(const JsonView& decoder);

// 0x0A for "<0x0A>"; -1 for other tokens.
int FallbackByte(const std::string& token);

}  // namespace muster::tokenizer
