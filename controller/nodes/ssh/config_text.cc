#include "controller/nodes/ssh/config_text.h"

#include <absl/strings/ascii.h>

#include <algorithm>

namespace muster::nodes::ssh {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

void SkipBlanks(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
}

bool IsBlank(char c) {
  return c == ' ' || c == '\t';
}

}  // namespace

bool TakeWord(std::string_view& text, std::string& word) {
  const size_t end = text.find_first_of(" \t\r\n\"=");
  word = std::string(text.substr(0, end));
  if (end == std::string_view::npos) {
    text = {};
    return true;
  }
  const char separator = text[end];
  text.remove_prefix(end + 1);
  if (separator == '"') {
    const size_t close = text.find('"');
    if (close == std::string_view::npos) return false;
    word += text.substr(0, close);
    text.remove_prefix(close + 1);
    SkipBlanks(text);
    return true;
  }
  SkipBlanks(text);
  if (separator != '=' && !text.empty() && text.front() == '=') {
    text.remove_prefix(1);
    SkipBlanks(text);
  }
  return true;
}

absl::StatusOr<std::vector<std::string>> SplitArguments(std::string_view text) {
  std::vector<std::string> words;
  size_t i = 0;
  while (i < text.size()) {
    if (IsBlank(text[i])) {
      ++i;
      continue;
    }
    if (text[i] == '#') break;
    std::string word;
    char quote = 0;
    for (; i < text.size(); ++i) {
      const char c = text[i];
      const char next = i + 1 < text.size() ? text[i + 1] : '\0';
      if (c == '\\' &&
          (next == '\'' || next == '"' || next == '\\' || (quote == 0 && next == ' '))) {
        word += next;
        ++i;
      } else if (quote == 0 && IsBlank(c)) {
        break;
      } else if (quote == 0 && (c == '"' || c == '\'')) {
        quote = c;
      } else if (quote != 0 && c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    }
    if (quote != 0) {
      return absl::InvalidArgumentError(std::string("a quote ") + quote + " is not closed");
    }
    words.push_back(std::move(word));
  }
  return words;
}

std::string ToLower(std::string_view text) {
  return absl::AsciiStrToLower({text.data(), text.size()});
}

}  // namespace muster::nodes::ssh
