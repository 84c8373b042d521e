#include "controller/nodes/ssh/config_values.h"

#include <absl/strings/numbers.h>

#include <algorithm>
#include <cctype>
#include <limits>

#include "controller/nodes/ssh/config_text.h"

namespace muster::nodes::ssh {
namespace {

int64_t SecondsOf(char unit) {
  switch (std::tolower(static_cast<unsigned char>(unit))) {
    case 's':
      return 1;
    case 'm':
      return 60;
    case 'h':
      return 3'600;
    case 'd':
      return 86'400;
    case 'w':
      return 604'800;
    default:
      return 0;
  }
}

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

bool IsControlOrBlank(char c) {
  return static_cast<unsigned char>(c) <= ' ' || c == 0x7f;
}

}  // namespace

std::optional<int> ParseTime(std::string_view text) {
  if (text.empty()) return std::nullopt;
  int64_t total = 0;
  while (!text.empty()) {
    int64_t value = 0;
    size_t digits = 0;
    for (; digits < text.size() && IsDigit(text[digits]); ++digits) {
      value = value * 10 + (text[digits] - '0');
      if (value > std::numeric_limits<int>::max()) return std::nullopt;
    }
    if (digits == 0) return std::nullopt;
    text.remove_prefix(digits);
    if (!text.empty()) {
      value *= SecondsOf(text.front());
      if (SecondsOf(text.front()) == 0) return std::nullopt;
      text.remove_prefix(1);
    }
    total += value;
    if (total > std::numeric_limits<int>::max()) return std::nullopt;
  }
  return static_cast<int>(total);
}

std::optional<uint16_t> ParsePort(std::string_view text) {
  int value = 0;
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), IsDigit);
  if (!digits || !absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &value)) {
    return std::nullopt;
  }
  if (value < 1 || value > 65535) return std::nullopt;
  return static_cast<uint16_t>(value);
}

std::optional<bool> ParseFlag(std::string_view text) {
  const std::string word = ToLower(text);
  if (word == "yes" || word == "true") return true;
  if (word == "no" || word == "false") return false;
  return std::nullopt;
}

std::optional<HostSpec> ParseHostSpec(std::string_view text) {
  constexpr std::string_view kScheme = "ssh://";
  if (text.substr(0, kScheme.size()) == kScheme) {
    text.remove_prefix(kScheme.size());
    if (!text.empty() && text.back() == '/') text.remove_suffix(1);
  }
  HostSpec spec;
  if (const size_t at = text.rfind('@'); at != std::string_view::npos) {
    spec.user = std::string(text.substr(0, at));
    if (spec.user->empty()) return std::nullopt;
    text.remove_prefix(at + 1);
  }
  size_t end = 0;
  if (!text.empty() && text.front() == '[') {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    spec.host = std::string(text.substr(1, close - 1));
    end = close + 1;
  } else {
    end = std::min(text.find_first_of(":/"), text.size());
    spec.host = std::string(text.substr(0, end));
  }
  text.remove_prefix(end);
  if (spec.host.empty() || (!text.empty() && text.front() != ':')) return std::nullopt;
  if (text.size() > 1) {
    spec.port = ParsePort(text.substr(1));
    if (!spec.port) return std::nullopt;
  }
  return spec;
}

absl::StatusOr<std::vector<HostSpec>> ParseJumps(std::string_view text) {
  text = text.substr(0, text.find('#'));
  while (!text.empty() && IsControlOrBlank(text.back())) text.remove_suffix(1);
  std::vector<HostSpec> jumps;
  if (ToLower(text) == "none") return jumps;
  while (true) {
    const size_t comma = std::min(text.find(','), text.size());
    std::optional<HostSpec> spec = ParseHostSpec(text.substr(0, comma));
    if (!spec) {
      return absl::InvalidArgumentError("'" + std::string(text.substr(0, comma)) +
                                        "' is not [USER@]HOST[:PORT]");
    }
    if (!IsSaneHost(spec->host) || (spec->user && !IsSaneUser(*spec->user))) {
      return absl::InvalidArgumentError("'" + std::string(text.substr(0, comma)) +
                                        "' has characters that no host or user has");
    }
    jumps.push_back(*std::move(spec));
    if (comma == text.size()) return jumps;
    text.remove_prefix(comma + 1);
  }
}

bool IsSaneHost(std::string_view host) {
  if (host.empty() || host.front() == '-') return false;
  return std::none_of(host.begin(), host.end(), [](char c) {
    return IsControlOrBlank(c) ||
           std::string_view("'`\"$\\;&<>|(){},").find(c) != std::string::npos;
  });
}

bool IsSaneUser(std::string_view user) {
  if (user.empty() || user.front() == '-' || user.back() == '\\') return false;
  return std::none_of(user.begin(), user.end(), [](char c) {
    return (c != ' ' && IsControlOrBlank(c)) ||
           std::string_view("'`\";&<>|(){}").find(c) != std::string::npos;
  });
}

}  // namespace muster::nodes::ssh
