#include "controller/nodes/command_line.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/status.h"
#include "common/suggest.h"
#include "controller/nodes/remote_command.h"

namespace muster::nodes {
namespace {

const std::vector<std::string>& Names() {
  static const std::vector<std::string> names = {"host", "addr", "user", "port", "command"};
  return names;
}

bool IsOurs(const std::string& name) {
  return std::find(Names().begin(), Names().end(), name) != Names().end();
}

struct Placeholder {
  size_t begin;
  size_t end;  // after the brace
  std::string name;
};

// The next {name} of lower-case letters from `from` on; other braces are plain text.
std::optional<Placeholder> FindPlaceholder(const std::string& word, size_t from) {
  for (size_t begin = word.find('{', from); begin != std::string::npos;
       begin = word.find('{', begin + 1)) {
    const size_t end = word.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", begin + 1);
    if (end == std::string::npos) return std::nullopt;
    if (word[end] == '}' && end > begin + 1) {
      return Placeholder{begin, end + 1, word.substr(begin + 1, end - begin - 1)};
    }
  }
  return std::nullopt;
}

absl::StatusOr<std::string> ValueOf(const std::string& name, const v1::Host& host) {
  if (name == "host") return host.host();
  if (name == "addr") return host.has_addr() ? host.addr() : host.host();
  if (name == "command") return RemoteLine();
  if (name == "user" && host.has_user()) return host.user();
  if (name == "port" && host.has_port()) return std::to_string(host.port());
  return absl::InvalidArgumentError("the template has {" + name + "}, but the hostfile gives no " +
                                    name + " for this host: write " + name + "=... on its line");
}

}  // namespace

absl::StatusOr<std::vector<std::string>> SplitWords(std::string_view text) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  char quote = '\0';
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool last = i + 1 == text.size();
    if (c == '\\' && quote != '\'') {
      if (last) return absl::InvalidArgumentError("ends with a backslash");
      const char next = text[++i];
      // Inside "..." a backslash is itself but before " and \, as in the shell.
      if (quote == '"' && next != '"' && next != '\\') word->push_back('\\');
      if (!word) word.emplace();
      word->push_back(next);
    } else if (quote != '\0') {
      if (c == quote) {
        quote = '\0';
      } else {
        word->push_back(c);
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      if (!word) word.emplace();
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (word) words.push_back(*std::exchange(word, std::nullopt));
    } else {
      if (!word) word.emplace();
      word->push_back(c);
    }
  }
  if (quote != '\0') {
    return absl::InvalidArgumentError(
        absl::StrCat("a quote ", std::string(1, quote), " is not closed"));
  }
  if (word) words.push_back(*std::move(word));
  return words;
}

absl::Status CheckTemplate(const std::vector<std::string>& words) {
  if (words.empty()) {
    return absl::InvalidArgumentError(
        "no program: write 'command:PROGRAM ... {host} ...', as in "
        "'command:docker exec -i {host}'");
  }
  bool names_host = false;
  for (const std::string& word : words) {
    size_t from = 0;
    while (const auto found = FindPlaceholder(word, from)) {
      from = found->end;
      names_host = names_host || found->name == "host" || found->name == "addr";
      const std::string hint = DidYouMean(found->name, Names());
      if (!IsOurs(found->name) && !hint.empty()) {
        return absl::InvalidArgumentError("unknown {" + found->name + "}" + hint +
                                          " (known: {host} {addr} {user} {port} {command})");
      }
    }
  }
  if (!names_host) {
    return absl::InvalidArgumentError("no {host} in it: every host would lead to the same machine");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> FillTemplate(const std::vector<std::string>& words,
                                                      const v1::Host& host) {
  std::vector<std::string> out;
  bool has_command = false;
  for (const std::string& word : words) {
    std::string filled;
    size_t from = 0;
    while (const auto found = FindPlaceholder(word, from)) {
      filled += word.substr(from, found->begin - from);
      from = found->end;
      if (!IsOurs(found->name)) {
        filled += word.substr(found->begin, found->end - found->begin);
        continue;
      }
      MUSTER_ASSIGN_OR_RETURN(const std::string value, ValueOf(found->name, host));
      filled += value;
      has_command = has_command || found->name == "command";
    }
    out.push_back(filled + word.substr(from));
  }
  if (!has_command) {
    for (std::string& word : RemoteWords()) out.push_back(std::move(word));
  }
  return out;
}

std::vector<std::string> OpensshWords(const std::vector<std::string>& extra, const v1::Host& host,
                                      int connect_timeout_s) {
  // ssh takes the first value of an option that it hears.
  std::vector<std::string> words = {"ssh", "-o", "BatchMode=yes", "-T"};
  words.insert(words.end(), extra.begin(), extra.end());
  if (host.has_port()) words.insert(words.end(), {"-p", std::to_string(host.port())});
  if (host.has_user()) words.insert(words.end(), {"-l", host.user()});
  for (const std::string& option :
       {"ConnectTimeout=" + std::to_string(connect_timeout_s),
        std::string("ServerAliveInterval=10"), std::string("ServerAliveCountMax=3"),
        std::string("ClearAllForwardings=yes"), std::string("RemoteCommand=none")}) {
    words.insert(words.end(), {"-o", option});
  }
  words.insert(words.end(), {"--", host.host(), RemoteLine()});
  return words;
}

}  // namespace muster::nodes
