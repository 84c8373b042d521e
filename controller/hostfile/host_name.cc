#include "controller/hostfile/host_name.h"

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include <algorithm>

#include "controller/hostfile/text.h"

namespace muster::hostfile {
namespace {

constexpr size_t kMaxName = 253;
constexpr size_t kMaxLabel = 63;
constexpr size_t kMaxUser = 32;

absl::Status BadHost(std::string_view name, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("bad host name {}: {}", Quoted(name), why));
}

// Syntax of other programs' hostfiles, and plain slips, told apart so that the message can help.
absl::Status BadCharacter(std::string_view name, char c) {
  switch (c) {
    case ',':
      return BadHost(name, "one host a line, or a list such as node[01-02]");
    case '^':
      return BadHost(name, "excluding hosts (^) is not known here; leave the line out");
    case '+':
      return BadHost(name, "relative hosts (+n, +e) are not known here; write the host's name");
    case '"':
    case '\'':
      return BadHost(name, "write it without quotes");
    case '{':
    case '}':
      return BadHost(name, "brace lists are not known here; write node[1-4]");
    case '#':
      return BadHost(name, "a comment needs a space before #");
    case '/':
      return BadHost(name, "a comment starts with # or // after a space; /* */ is not known");
    case '*':
      return BadHost(name, "wildcards are not known here; write node[1-4]");
    case ']':
      return BadHost(name, "']' without '['");
    case '=':
      return BadHost(name, "'=' cannot be in a host name; the host comes first, then KEY=VALUE");
    default:
      return BadHost(name, fmt::format("{} is not a letter, digit, '-' or '.'",
                                       Quoted(std::string_view(&c, 1))));
  }
}

absl::Status CheckLabel(std::string_view name, std::string_view label) {
  if (label.empty()) return BadHost(name, "empty part between dots");
  if (label.size() > kMaxLabel) {
    return BadHost(
        name, fmt::format("the part {} is longer than {} characters", Quoted(label), kMaxLabel));
  }
  if (label.front() == '-' || label.back() == '-') {
    return BadHost(name, "a part may not start or end with '-'");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckHostName(std::string_view name) {
  if (name.empty()) return absl::InvalidArgumentError("host missing");
  if (name.front() == '-')
    return BadHost(name, "it starts with '-' and would be read as an option");
  for (const char c : name) {
    if (!IsAlnum(c) && c != '-' && c != '.' && c != '_') return BadCharacter(name, c);
  }
  std::string_view rest = name;
  if (rest.ends_with('.')) rest.remove_suffix(1);
  if (rest.size() > kMaxName) {
    return BadHost(name, fmt::format("longer than {} characters", kMaxName));
  }
  while (true) {
    const size_t dot = rest.find('.');
    if (absl::Status status = CheckLabel(name, rest.substr(0, dot)); !status.ok()) return status;
    if (dot == std::string_view::npos) return absl::OkStatus();
    rest.remove_prefix(dot + 1);
  }
}

absl::Status CheckUser(std::string_view user) {
  if (user.empty()) return absl::InvalidArgumentError("user name missing before '@'");
  const auto allowed = [](char c) { return IsAlnum(c) || c == '_' || c == '.' || c == '-'; };
  const bool good_start = IsAlnum(user.front()) || user.front() == '_';
  if (good_start && user.size() <= kMaxUser && std::all_of(user.begin(), user.end(), allowed)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(fmt::format(
      "bad user name {}: 1-{} letters, digits, '_', '.' and '-', the first a letter, digit or '_'",
      Quoted(user), kMaxUser));
}

std::string NameKey(std::string_view name) {
  std::string key(name);
  if (key.ends_with('.')) key.pop_back();
  absl::AsciiStrToLower(&key);
  return key;
}

bool IsLoopbackName(std::string_view name) {
  const std::string key = NameKey(name);
  return key == "localhost" || key == "localhost.localdomain" || key.ends_with(".localhost") ||
         key == "ip6-localhost";
}

}  // namespace muster::hostfile
