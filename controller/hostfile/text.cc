#include "controller/hostfile/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/utf8.h"

namespace muster::hostfile {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool IsBlank(char c) {
  return c == ' ' || c == '\t';
}

struct NamedRange {
  uint32_t first;
  uint32_t last;
  std::string_view name;
};

// What editors, chat programs and input methods leave behind.
constexpr std::array kKnownCharacters = {
    NamedRange{0x00A0, 0x00A0, "no-break space"},
    NamedRange{0x202F, 0x202F, "narrow no-break space"},
    NamedRange{0x200B, 0x200D, "zero-width space"},
    NamedRange{0x2060, 0x2060, "zero-width space"},
    NamedRange{0xFEFF, 0xFEFF, "byte order mark (BOM) inside the file"},
    NamedRange{0x3000, 0x3000, "full-width space"},
    NamedRange{0xFF10, 0xFF19, "full-width digit"},
    NamedRange{0xFF01, 0xFF5E, "full-width character"},
    NamedRange{0x2010, 0x2015, "typographic dash"},
    NamedRange{0x2212, 0x2212, "minus sign"},
    NamedRange{0x2018, 0x201F, "typographic quote"},
};

}  // namespace

std::vector<Line> SplitLines(std::string_view bytes) {
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  std::vector<Line> lines;
  for (uint32_t number = 1; !bytes.empty(); ++number) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    std::string_view text = bytes.substr(0, end);
    if (text.ends_with('\r')) text.remove_suffix(1);
    lines.push_back({number, text});
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  return lines;
}

bool IsUtf16(std::string_view bytes) {
  return bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF");
}

absl::Status CheckLineBytes(std::string_view line) {
  if (line.size() > kMaxLineBytes) {
    return absl::InvalidArgumentError(
        fmt::format("line is longer than {} bytes ({}); give the hosts several lines",
                    kMaxLineBytes, line.size()));
  }
  for (size_t i = 0; i < line.size(); ++i) {
    const auto c = static_cast<unsigned char>(line[i]);
    if ((c >= 0x20 && c != 0x7F) || c == '\t') continue;
    if (c == '\r') {
      return absl::InvalidArgumentError(fmt::format(
          "carriage return (CR) in the middle of the line, at byte {}: what follows would be read "
          "as part of this line; end lines with LF or CR LF",
          i + 1));
    }
    return absl::InvalidArgumentError(fmt::format(
        "{} at byte {}: not a text file?",
        c == 0 ? std::string("NUL byte") : fmt::format("control byte 0x{:02X}", c), i + 1));
  }
  return absl::OkStatus();
}

std::string_view StripComment(std::string_view line) {
  for (size_t i = 0; i < line.size(); ++i) {
    if (i > 0 && !IsBlank(line[i - 1])) continue;
    if (line[i] == '#' || line.substr(i).starts_with("//")) return line.substr(0, i);
  }
  return line;
}

absl::Status CheckAscii(std::string_view text) {
  const auto* at = std::find_if(text.begin(), text.end(),
                                [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
  if (at == text.end()) return absl::OkStatus();
  const auto offset = static_cast<size_t>(at - text.begin());
  const Utf8Character character = DecodeUtf8(text.substr(offset));
  if (character.length == 0) {
    return absl::InvalidArgumentError(
        fmt::format("byte 0x{:02X} at byte {} is not ASCII; only comments may hold other text",
                    static_cast<unsigned char>(text[offset]), offset + 1));
  }
  for (const NamedRange& known : kKnownCharacters) {
    if (character.code_point >= known.first && character.code_point <= known.last) {
      return absl::InvalidArgumentError(fmt::format("{} (U+{:04X}) at byte {}: retype it in ASCII",
                                                    known.name, character.code_point, offset + 1));
    }
  }
  const std::vector<std::string_view> before = SplitWords(text.substr(0, offset));
  const bool in_first_word = before.empty() || (before.size() == 1 && !IsBlank(text[offset - 1]));
  if (in_first_word) {
    return absl::InvalidArgumentError(
        fmt::format("non-ASCII host name (U+{:04X} at byte {}): write its xn-- form",
                    character.code_point, offset + 1));
  }
  return absl::InvalidArgumentError(
      fmt::format("non-ASCII character U+{:04X} at byte {}; only comments may hold other text",
                  character.code_point, offset + 1));
}

std::vector<std::string_view> SplitWords(std::string_view text) {
  std::vector<std::string_view> words;
  size_t i = 0;
  while (i < text.size()) {
    if (IsBlank(text[i])) {
      ++i;
      continue;
    }
    const size_t start = i;
    while (i < text.size() && !IsBlank(text[i])) ++i;
    words.push_back(text.substr(start, i - start));
  }
  return words;
}

std::string Quoted(std::string_view text) {
  constexpr size_t kShown = 80;
  std::string out = "'";
  for (const char c : text.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7F) {
      out += fmt::format("\\x{:02X}", byte);
    } else {
      out += c;
    }
  }
  if (text.size() > kShown) out += "...";
  return out + "'";
}

std::optional<uint32_t> ParseDecimal(std::string_view text) {
  if (text.size() > 9 || !IsDigits(text)) return std::nullopt;
  uint32_t value = 0;
  for (const char c : text) value = value * 10 + static_cast<uint32_t>(c - '0');
  return value;
}

bool IsDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsDigit);
}

}  // namespace muster::hostfile
