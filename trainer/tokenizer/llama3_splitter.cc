#include "trainer/tokenizer/llama3_splitter.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "trainer/tokenizer/unicode_class.h"
#include "trainer/tokenizer/utf8.h"

namespace muster::tokenizer {
namespace {

const CharClass* const kClasses = ClassTable();

// A character and where it ends.
struct Char {
  uint32_t code;
  CharClass kind;
  size_t end;
};

Char Look(std::string_view text, size_t at) {
  const auto first = static_cast<uint8_t>(text[at]);
  if (first < 0x80) return {first, kClasses[first], at + 1};
  size_t end = at;
  const uint32_t code = NextCodePoint(text, end);
  return {code, kClasses[code], end};
}

bool IsLineBreak(uint32_t code) {
  return code == '\n' || code == '\r';
}

size_t SkipWhile(std::string_view text, size_t at, CharClass kind) {
  while (at < text.size()) {
    const Char c = Look(text, at);
    if (c.kind != kind) break;
    at = c.end;
  }
  return at;
}

bool IsAsciiLetter(char c) {
  return static_cast<uint8_t>((c | 0x20) - 'a') < 26;
}

// The end of the ASCII letters from `at` on: eight bytes at a time, as words are short.
size_t SkipAsciiLetters(std::string_view text, size_t at) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kHighs = 0x80 * kOnes;
  static_assert(std::endian::native == std::endian::little);
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t bytes;
    std::memcpy(&bytes, text.data() + at, sizeof(bytes));
    // The high bit of each byte, once it is lower case: at least an 'a', above a 'z'.
    const uint64_t lower = (bytes | 0x20 * kOnes) & ~kHighs;
    const uint64_t from_a = lower + (0x80 - 'a') * kOnes;
    const uint64_t above_z = lower + (0x80 - 'z' - 1) * kOnes;
    const uint64_t others = ~(from_a & ~above_z & ~bytes) & kHighs;
    if (others != 0) return at + static_cast<size_t>(std::countr_zero(others)) / 8;
  }
  while (at < text.size() && IsAsciiLetter(text[at])) ++at;
  return at;
}

size_t SkipLetters(std::string_view text, size_t at) {
  while (true) {
    at = SkipAsciiLetters(text, at);
    if (at == text.size() || static_cast<uint8_t>(text[at]) < 0x80) return at;
    const Char c = Look(text, at);
    if (c.kind != CharClass::kLetter) return at;
    at = c.end;
  }
}

size_t SkipLineBreaks(std::string_view text, size_t at) {
  while (at < text.size() && (text[at] == '\n' || text[at] == '\r')) ++at;
  return at;
}

// End of 's, 't, 're, 've, 'm, 'll or 'd in either case, `at` being the apostrophe; 0 when none
// follows.
size_t ContractionEnd(std::string_view text, size_t at) {
  const auto lower = [&text](size_t i) {
    return i < text.size() ? static_cast<uint8_t>(text[i]) | 0x20 : 0;
  };
  const int first = lower(at + 1);
  const int second = lower(at + 2);
  switch (first) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return at + 2;
    case 'r':
    case 'v':
      return second == 'e' ? at + 3 : 0;
    case 'l':
      return second == 'l' ? at + 3 : 0;
    default:
      // The long s is an s, when case does not matter.
      return text.substr(at + 1, 2) == "\u017f" ? at + 3 : 0;
  }
}

// A run of white space that starts at `at` and that no letter or symbol takes part of.
size_t SpaceEnd(std::string_view text, size_t at) {
  size_t end = at;
  size_t last_char = at;
  size_t after_line_break = 0;
  while (end < text.size()) {
    const Char c = Look(text, end);
    if (c.kind != CharClass::kSpace) break;
    last_char = end;
    end = c.end;
    if (IsLineBreak(c.code)) after_line_break = end;
  }
  if (after_line_break != 0) return after_line_break;
  // The last space stays for the word that follows.
  return end == text.size() || last_char == at ? end : last_char;
}

}  // namespace

Piece Llama3Splitter::Next(std::string_view text, size_t at) {
  // Most words of most texts.
  if (text[at] == ' ' && at + 1 < text.size() && IsAsciiLetter(text[at + 1])) {
    return {SkipLetters(text, at + 2), true};
  }
  const Char c = Look(text, at);
  if (c.code == '\'') {
    if (const size_t end = ContractionEnd(text, at)) return {end, true};
  }
  switch (c.kind) {
    case CharClass::kLetter:
      return {SkipLetters(text, c.end), true};
    case CharClass::kNumber: {
      size_t end = c.end;
      for (int i = 1; i < 3 && end < text.size(); ++i) {
        const Char next = Look(text, end);
        if (next.kind != CharClass::kNumber) break;
        end = next.end;
      }
      return {end, true};
    }
    case CharClass::kSpace:
    case CharClass::kOther:
      break;
  }
  const bool has_next = c.end < text.size();
  const CharClass next = has_next ? Look(text, c.end).kind : CharClass::kSpace;
  if (next == CharClass::kLetter && !IsLineBreak(c.code)) {
    return {SkipLetters(text, c.end), true};
  }
  if (c.kind == CharClass::kOther || (c.code == ' ' && next == CharClass::kOther)) {
    return {SkipLineBreaks(text, SkipWhile(text, c.end, CharClass::kOther)), true};
  }
  return {SpaceEnd(text, at), true};
}

}  // namespace muster::tokenizer
