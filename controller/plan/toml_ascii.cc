#include "controller/plan/toml_ascii.h"

#include <algorithm>
#include <string>

namespace muster::plan {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// The end of the string that starts at text[at] with a quote: after its closing quotes, or at the
// end of the line for a one-line string without any.
size_t EndOfString(std::string_view text, size_t at) {
  const char quote = text[at];
  const std::string three(3, quote);
  const bool multi_line = text.substr(at).starts_with(three);
  const std::string_view close = multi_line ? std::string_view(three) : text.substr(at, 1);
  for (size_t i = at + close.size(); i < text.size(); ++i) {
    if (!multi_line && text[i] == '\n') return i;
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text.substr(i).starts_with(close)) {
      i += close.size();
      // """"" ends a string whose last two characters are quotes.
      for (int more = 0; multi_line && more < 2 && i < text.size() && text[i] == quote; ++more) ++i;
      return i;
    }
  }
  return text.size();
}

bool StartsCharacter(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

Position PositionOf(std::string_view text, size_t at) {
  const std::string_view before = text.substr(0, at);
  const size_t newline = before.rfind('\n');
  const std::string_view line =
      newline == std::string_view::npos ? before : before.substr(newline + 1);
  return {static_cast<uint32_t>(1 + std::count(before.begin(), before.end(), '\n')),
          static_cast<uint32_t>(1 + std::count_if(line.begin(), line.end(), StartsCharacter))};
}

}  // namespace

std::optional<Position> FindForeignCharacter(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '#') {
      i = std::min(text.find('\n', i), text.size());
    } else if (text[i] == '"' || text[i] == '\'') {
      i = EndOfString(text, i);
    } else if (static_cast<unsigned char>(text[i]) >= 0x80) {
      return PositionOf(text, i);
    } else {
      ++i;
    }
  }
  return std::nullopt;
}

std::string WithoutForeignCharacters(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::string ascii;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      ascii += c;
    } else if (StartsCharacter(c)) {
      ascii += 'x';
    }
  }
  return ascii;
}

}  // namespace muster::plan
