#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// Classes of characters as Python's str and its `regex` package have them; letters as the installed
// utf8proc knows them.

namespace muster::tools {

struct Character {
  int32_t code;
  size_t size;  // bytes of UTF-8
};

// The character at `at` < text.size(); `text` is valid UTF-8.
Character CharacterAt(std::string_view text, size_t at);

// \s of a pattern.
bool IsSpace(int32_t code);
// What str.strip() takes away: four control characters more.
bool IsStripped(int32_t code);
bool IsDecimal(int32_t code);  // \d
bool IsUpper(int32_t code);    // str.isupper()
bool IsLower(int32_t code);    // str.islower()
bool IsLetter(int32_t code);   // [^\W\d]

// str.lower(), with its two special cases: the capital sigma at the end of a word, and the dotted
// capital I.
std::string ToLower(std::string_view text);

// str.rstrip().
std::string_view StripRight(std::string_view text);
// Whether str.strip() leaves nothing.
bool IsBlank(std::string_view text);

}  // namespace muster::tools
