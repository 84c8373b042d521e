#include "controller/cli/log_since.h"

#include <absl/strings/numbers.h>
#include <absl/time/time.h>
#include <fmt/format.h>

#include <optional>
#include <string>

namespace muster::cli {
namespace {

// absl's durations know no days.
std::optional<absl::Duration> Ago(const std::string& text) {
  absl::Duration parsed;
  const size_t day = text.find('d');
  double days = 0;
  std::string rest = text;
  if (day != std::string::npos) {
    if (!absl::SimpleAtod(text.substr(0, day), &days)) return std::nullopt;
    rest = text.substr(day + 1);
  }
  const bool only_days = day != std::string::npos && rest.empty();
  if (!only_days && !absl::ParseDuration(rest, &parsed)) return std::nullopt;
  parsed += days * absl::Hours(24);
  if (parsed < absl::ZeroDuration() || parsed > absl::Hours(24 * 36500)) return std::nullopt;
  return parsed;
}

}  // namespace

absl::StatusOr<int64_t> ParseSince(std::string_view text, int64_t now_ns) {
  const std::string word(text);
  const absl::Time now = absl::FromUnixNanos(now_ns);
  if (const auto ago = Ago(word)) return absl::ToUnixNanos(now - *ago);
  double seconds = 0;
  if (!word.empty() && word[0] == '@' && absl::SimpleAtod(word.substr(1), &seconds) &&
      seconds >= 0 && seconds < 9e9) {
    return static_cast<int64_t>(seconds * 1e9);
  }
  const absl::TimeZone zone = absl::LocalTimeZone();
  // Nothing behind today's date would be this midnight.
  const bool has_digit = word.find_first_of("0123456789") != std::string::npos;
  const std::string today = absl::FormatTime("%Y-%m-%d ", now, zone);
  std::string error;
  absl::Time parsed;
  for (const char* format : {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%E*S", "%Y-%m-%dT%H:%M",
                             "%Y-%m-%dT%H:%M:%E*S"}) {
    if (has_digit && (absl::ParseTime(format, word, zone, &parsed, &error) ||
                      absl::ParseTime(format, today + word, zone, &parsed, &error))) {
      return absl::ToUnixNanos(parsed);
    }
  }
  if (absl::ParseTime("%Y-%m-%dT%H:%M:%E*SZ", word, absl::UTCTimeZone(), &parsed, &error)) {
    return absl::ToUnixNanos(parsed);
  }
  return absl::InvalidArgumentError(
      fmt::format("'{}' is no time: 10m, 2h, 1d, 14:03, '2026-11-29 14:03:20', "
                  "2026-11-29T14:03:20Z or @1700000000",
                  text));
}

}  // namespace muster::cli
