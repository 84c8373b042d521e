#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The bytes of a hostfile: lines, comments, words. Nothing here knows about hosts. Messages carry
// no location.

namespace muster::hostfile {

inline constexpr size_t kMaxFileBytes = size_t{16} << 20;
inline constexpr size_t kMaxLineBytes = 4096;

struct Line {
  uint32_t number = 0;    // from 1
  std::string_view text;  // without LF, and without the one CR before it
};

// Lines end with LF or CR LF, the last one may lack it; one byte order mark at the start is
// skipped.
std::vector<Line> SplitLines(std::string_view bytes);

// True for the byte order marks of UTF-16.
bool IsUtf16(std::string_view bytes);

// What holds for a whole line, its comment included: length, and no control byte but TAB.
absl::Status CheckLineBytes(std::string_view line);

// The line up to its comment: `#` or `//` at the start or after a blank.
std::string_view StripComment(std::string_view line);

// Outside comments only ASCII is allowed. The message names what the first other character is.
absl::Status CheckAscii(std::string_view text);

// The words between blanks (space, TAB).
std::vector<std::string_view> SplitWords(std::string_view text);

// `text` in single quotes for a message: control and non-ASCII bytes escaped, cut at 80 bytes.
std::string Quoted(std::string_view text);

// 1 to 9 decimal digits, leading zeros ignored; nothing else.
std::optional<uint32_t> ParseDecimal(std::string_view text);

bool IsDigits(std::string_view text);  // at least one, nothing else

// ASCII only, whatever the locale says.
inline bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
inline bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
inline bool IsAlnum(char c) {
  return IsDigit(c) || IsLetter(c);
}

}  // namespace muster::hostfile
