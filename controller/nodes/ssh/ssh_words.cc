#include "controller/nodes/ssh/ssh_words.h"

#include <absl/strings/str_cat.h>

#include <string_view>

#include "common/status.h"

namespace muster::nodes::ssh {
namespace {

absl::Status CheckPath(char option, const std::string& path) {
  if (path == "none" || path.front() == '/' || path.substr(0, 2) == "~/") return absl::OkStatus();
  return absl::InvalidArgumentError(std::string{'-', option} + " " + path +
                                    ": write the whole path; the controller has a working folder "
                                    "of its own");
}

// As one word of a configuration.
std::string Quoted(const std::string& word) {
  std::string out = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

absl::Status Apply(char option, const std::string& value, ConfigRequest& request) {
  switch (option) {
    case 'F':
      MUSTER_RETURN_IF_ERROR(CheckPath(option, value));
      request.file = value;
      return absl::OkStatus();
    case 'i':
      MUSTER_RETURN_IF_ERROR(CheckPath(option, value));
      request.options.push_back("IdentityFile=" + Quoted(value));
      return absl::OkStatus();
    case 'o':
      request.options.push_back(value);
      return absl::OkStatus();
    case 'J': {
      auto jumps = ParseJumps(value);
      if (!jumps.ok()) return Annotate(jumps.status(), "-J");
      request.options.push_back("ProxyJump=" + value);
      return absl::OkStatus();
    }
    case 'l':
      if (!IsSaneUser(value)) return absl::InvalidArgumentError("-l " + value + " is no user name");
      request.user = value;
      return absl::OkStatus();
    case 'p':
      request.port = ParsePort(value);
      if (!request.port) {
        return absl::InvalidArgumentError("-p " + value + " is not in 1 to 65535");
      }
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("-", std::string(1, option),
                       " is not known (known: -F -o -i -J -l -p); for all options of your ssh use "
                       "transport openssh"));
  }
}

}  // namespace

absl::StatusOr<ConfigRequest> ParseSshWords(const std::vector<std::string>& words) {
  ConfigRequest request;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.size() < 2 || word.front() != '-' || word[1] == '-') {
      return absl::InvalidArgumentError("'" + word + "' is no option of ssh");
    }
    std::string value = word.substr(2);
    if (std::string_view("FioJlp").find(word[1]) != std::string_view::npos && value.empty()) {
      if (++i == words.size() || words[i].empty()) {
        return absl::InvalidArgumentError(word + " needs a value");
      }
      value = words[i];
    }
    MUSTER_RETURN_IF_ERROR(Apply(word[1], value, request));
  }
  return request;
}

}  // namespace muster::nodes::ssh
