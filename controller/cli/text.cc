#include "controller/cli/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <ctime>

#include "common/utf8.h"

namespace muster::cli {
namespace {

// Length of the SGR sequence (ESC [ digits and ; m) at the beginning of `s`; 0 when there is none.
size_t SgrLength(std::string_view s) {
  constexpr size_t kLongest = 40;
  if (s.size() < 3 || s[0] != '\x1b' || s[1] != '[') return 0;
  for (size_t i = 2; i < std::min(s.size(), kLongest); ++i) {
    if (s[i] == 'm') return i + 1;
    if (s[i] != ';' && s[i] != ':' && (s[i] < '0' || s[i] > '9')) return 0;
  }
  return 0;
}

// U+0080 to U+009F: terminals may obey them as they obey ESC.
bool IsC1(std::string_view sequence) {
  return sequence.size() == 2 && sequence[0] == '\xC2' &&
         static_cast<unsigned char>(sequence[1]) < 0xA0;
}

void AppendHex(std::string* out, std::string_view bytes) {
  for (const unsigned char byte : bytes)
    fmt::format_to(std::back_inserter(*out), "\\x{:02x}", byte);
}

}  // namespace

std::string EscapeForDisplay(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  bool coloured = false;
  while (!bytes.empty()) {
    const unsigned char c = static_cast<unsigned char>(bytes[0]);
    size_t taken = 1;
    if (const size_t sgr = SgrLength(bytes); sgr > 0) {
      taken = sgr;
      coloured = true;
      out.append(bytes.substr(0, taken));
    } else if (c == '\t' || (c >= 0x20 && c < 0x7F)) {
      out.push_back(bytes[0]);
    } else {
      const size_t length = DecodeUtf8(bytes).length;
      taken = std::max<size_t>(length, 1);
      const std::string_view sequence = bytes.substr(0, taken);
      if (length >= 2 && !IsC1(sequence)) {
        out.append(sequence);
      } else {
        AppendHex(&out, sequence);
      }
    }
    bytes.remove_prefix(taken);
  }
  if (coloured) out.append("\x1b[0m");
  return out;
}

size_t DisplayWidth(std::string_view utf8) {
  size_t width = 0;
  while (!utf8.empty()) {
    if (const size_t sgr = SgrLength(utf8); sgr > 0) {
      utf8.remove_prefix(sgr);
      continue;
    }
    ++width;
    utf8.remove_prefix(std::max<size_t>(DecodeUtf8(utf8).length, 1));
  }
  return width;
}

std::string FormatTime(int64_t realtime_ns) {
  if (realtime_ns == 0) return "-";
  const std::time_t seconds = realtime_ns / 1'000'000'000;
  std::tm local{};
  localtime_r(&seconds, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  return text;
}

std::string FormatMoment(int64_t realtime_ns) {
  if (realtime_ns == 0) return fmt::format("{:>26}", "-");
  return fmt::format("{}.{:06}", FormatTime(realtime_ns), realtime_ns % 1'000'000'000 / 1000);
}

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

std::string Count(uint64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

}  // namespace muster::cli
