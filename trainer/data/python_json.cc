#include "trainer/data/python_json.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

namespace muster::data::python_json {
namespace {

// One character of UTF-8, or a byte that is none of it (Python reads such a byte of a path as
// U+DC00 + byte).
uint32_t NextCodePoint(std::string_view& text) {
  const auto byte = [&text](size_t i) {
    return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0};
  };
  const uint8_t lead = byte(0);
  const size_t length = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  uint32_t code = length == 1 ? lead : lead & (0xffU >> (length + 1));
  bool valid = lead < 0x80 || (lead >= 0xc2 && lead <= 0xf4);
  for (size_t i = 1; i < length; ++i) {
    valid = valid && (byte(i) & 0xc0) == 0x80;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  valid =
      valid && code >= kSmallest[length] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  text.remove_prefix(valid ? length : 1);
  return valid ? code : 0xdc00U + lead;
}

// Deeper by one level. A text has no line breaks of its own: they are escaped.
std::string Indented(std::string_view json) {
  std::string out;
  for (const char c : json) {
    out += c;
    if (c == '\n') out += "    ";
  }
  return out;
}

std::string Group(char open, char close, const std::vector<std::string>& items) {
  std::string out(1, open);
  for (const std::string& item : items)
    out += (out.size() > 1 ? ",\n    " : "\n    ") + Indented(item);
  if (!items.empty()) out += '\n';
  return out + close;
}

}  // namespace

std::string Integer(int64_t value) {
  return std::to_string(value);
}

std::string Float(double value) {
  char buffer[400];
  const auto write = [&](std::chars_format format) {
    return std::string(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value, format).ptr);
  };
  const std::string scientific = write(std::chars_format::scientific);
  const int exponent = std::atoi(scientific.c_str() + scientific.find('e') + 1);
  if (exponent < -4 || exponent >= 16) return scientific;
  const std::string fixed = write(std::chars_format::fixed);
  return fixed.find('.') == std::string::npos ? fixed + ".0" : fixed;
}

std::string Text(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const uint32_t code = NextCodePoint(text);
    constexpr std::string_view kShort = "\"\\\b\f\n\r\t";
    constexpr std::string_view kNames = "\"\\bfnrt";
    const size_t special = code < 0x80 ? kShort.find(static_cast<char>(code)) : std::string::npos;
    if (special != std::string::npos) {
      out += '\\';
      out += kNames[special];
    } else if (code >= 0x20 && code < 0x7f) {
      out += static_cast<char>(code);
    } else if (code < 0x10000) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      const uint32_t rest = code - 0x10000;
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff));
    }
  }
  return out + '"';
}

std::string List(const std::vector<std::string>& items) {
  return Group('[', ']', items);
}

std::string Dict(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::vector<std::string> items;
  for (const auto& [key, value] : entries) items.push_back(Text(key) + ": " + value);
  return Group('{', '}', items);
}

}  // namespace muster::data::python_json
