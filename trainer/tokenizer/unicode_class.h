#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace muster::tokenizer {

struct CodePointRange {
  uint32_t first;
  uint32_t last;
};

enum class CharClass : uint8_t { kOther, kLetter, kNumber, kSpace };  // \p{L}, \p{N}, \s

// Class of a code point below 0x110000, as Hugging Face's regular expressions see it (Unicode 16).
// A line break is kSpace.
CharClass ClassOf(uint32_t code_point);

// The table behind ClassOf, 0x110000 entries, for tight loops.
const CharClass* ClassTable();

// White space to Python's str: \s and the four ASCII separators.
inline bool IsPythonSpace(uint32_t code_point) {
  return ClassOf(code_point) == CharClass::kSpace || (code_point >= 0x1c && code_point <= 0x1f);
}

// Whether Rust's \w, which decides where a word ends beside an added token, has it.
bool IsWord(uint32_t code_point);

// Members of \s.
std::span<const CodePointRange> SpaceRanges();

// Members of \p{name} for L, N, Lu, Ll, Lt, Lm, Lo, M, Nd, P, S and Han; empty for any other name.
std::span<const CodePointRange> PropertyRanges(std::string_view name);

// 0..9 for a decimal digit of any script.
std::optional<int> DecimalValue(uint32_t code_point);

}  // namespace muster::tokenizer
