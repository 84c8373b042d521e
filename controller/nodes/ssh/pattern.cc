#include "controller/nodes/ssh/pattern.h"

#include <algorithm>
#include <string>

#include "controller/nodes/ssh/config_text.h"

namespace muster::nodes::ssh {
namespace {

// A pattern of a list that is longer than this makes OpenSSH give the list up.
constexpr size_t kLongestPattern = 1022;

}  // namespace

bool MatchPattern(std::string_view text, std::string_view pattern) {
  // The last * seen, and the text that it has to leave: backtracking to it alone is enough.
  size_t star = std::string_view::npos;
  size_t retry = 0;
  size_t t = 0;
  size_t p = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

ListMatch MatchPatternList(std::string_view text, std::string_view list) {
  bool matched = false;
  while (!list.empty()) {
    const bool negated = list.front() == '!';
    if (negated) list.remove_prefix(1);
    const size_t comma = std::min(list.find(','), list.size());
    if (comma > kLongestPattern) return ListMatch::kNo;
    if (MatchPattern(text, list.substr(0, comma))) {
      if (negated) return ListMatch::kNegated;
      matched = true;
    }
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return matched ? ListMatch::kYes : ListMatch::kNo;
}

ListMatch MatchHostList(std::string_view host, std::string_view list) {
  return MatchPatternList(ToLower(host), ToLower(list));
}

}  // namespace muster::nodes::ssh
