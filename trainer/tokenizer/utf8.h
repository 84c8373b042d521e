#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::tokenizer {

// Decodes the character at `at` of valid UTF-8 and moves `at` past it.
inline uint32_t NextCodePoint(std::string_view text, size_t& at) {
  const auto byte = [&text](size_t i) {
    return static_cast<uint32_t>(static_cast<uint8_t>(text[i]));
  };
  const uint32_t first = byte(at);
  if (first < 0x80) {
    ++at;
    return first;
  }
  if (first < 0xe0) {
    at += 2;
    return (first & 0x1f) << 6 | (byte(at - 1) & 0x3f);
  }
  if (first < 0xf0) {
    at += 3;
    return (first & 0x0f) << 12 | (byte(at - 2) & 0x3f) << 6 | (byte(at - 1) & 0x3f);
  }
  at += 4;
  return (first & 0x07) << 18 | (byte(at - 3) & 0x3f) << 12 | (byte(at - 2) & 0x3f) << 6 |
         (byte(at - 1) & 0x3f);
}

// The start of the character that ends at `end` > 0.
inline size_t PreviousChar(std::string_view text, size_t end) {
  do {
    --end;
  } while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80);
  return end;
}

// Appends a code point below 0x110000 as UTF-8 (surrogates too, as three bytes).
void AppendUtf8(uint32_t code_point, std::string& out);

// Bytes of the longest valid prefix; text.size() when all of it is valid (no surrogates, no
// overlong forms).
size_t ValidUtf8Prefix(std::string_view text);

// Throws TokenizerError naming the first byte that is not valid.
void CheckUtf8(std::string_view text);

}  // namespace muster::tokenizer
