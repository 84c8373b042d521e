#include "controller/engine/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/utf8.h"

namespace muster::engine {
namespace {

bool IsContinuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

}  // namespace

std::string Printable(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const size_t length = DecodeUtf8(bytes).length;
    const auto first = static_cast<unsigned char>(bytes[0]);
    const bool control = (first < 0x20 && first != '\n') || first == 0x7f;
    if (length == 0 || control) {
      text += first == '\t' ? ' ' : '?';
      bytes.remove_prefix(1);
    } else {
      text += bytes.substr(0, length);
      bytes.remove_prefix(length);
    }
  }
  return text;
}

std::string Shorten(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  size_t end = max_bytes;
  while (end > 0 && IsContinuation(text[end])) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::string FormatDuration(int64_t ns) {
  const double seconds = static_cast<double>(std::max<int64_t>(ns, 0)) / 1e9;
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  const int64_t whole = std::llround(seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}m {:02}s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{}h {:02}m", whole / 3600, whole % 3600 / 60);
  return fmt::format("{}d {:02}h", whole / 86400, whole % 86400 / 3600);
}

}  // namespace muster::engine
