#include "controller/stage/ignore.h"

#include <algorithm>
#include <utility>

namespace muster::stage {
namespace {

// A bracket expression at the front of `pattern`: whether `c` is in it; `rest` is what follows it.
// False and no `rest` change: it is not closed, and its bracket is a plain character.
bool MatchClass(std::string_view pattern, char c, std::string_view& rest, bool& matched) {
  size_t i = 1;
  const bool negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (negated) ++i;
  bool found = false;
  for (bool first = true; i < pattern.size() && (first || pattern[i] != ']'); first = false) {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
    const char low = pattern[i++];
    char high = low;
    if (i + 1 < pattern.size() && pattern[i] == '-' && pattern[i + 1] != ']') {
      high = pattern[i + 1];
      i += 2;
    }
    found = found || (low <= c && c <= high);
  }
  if (i >= pattern.size()) return false;
  rest = pattern.substr(i + 1);
  matched = found != negated && c != '/';
  return true;
}

// How a pattern may go on after a `*`: one of the two is tried when what follows does not fit.
struct Retry {
  std::string_view pattern;
  std::string_view text;
  bool over_slashes = false;
  bool set = false;
};

// Linear for one star, at most quadratic for several: only the last star of a kind is retried.
bool Glob(std::string_view pattern, std::string_view text) {
  Retry star;
  Retry stars;
  while (true) {
    if (pattern.starts_with("**/")) {
      pattern.remove_prefix(3);
      stars = {pattern, text, true, true};
      star.set = false;
      continue;
    }
    if (pattern == "**" || pattern == "/**") return pattern == "**" || text.size() > 1;
    if (!pattern.empty() && pattern[0] == '*') {
      pattern.remove_prefix(1);
      star = {pattern, text, false, true};
      continue;
    }
    bool fits = false;
    if (!pattern.empty() && !text.empty()) {
      std::string_view rest;
      bool matched = false;
      if (pattern[0] == '?') {
        fits = text[0] != '/';
        rest = pattern.substr(1);
      } else if (pattern[0] == '[' && MatchClass(pattern, text[0], rest, matched)) {
        fits = matched;
      } else {
        const bool escaped = pattern[0] == '\\' && pattern.size() > 1;
        fits = pattern[escaped ? 1 : 0] == text[0];
        rest = pattern.substr(escaped ? 2 : 1);
      }
      if (fits) {
        pattern = rest;
        text.remove_prefix(1);
        continue;
      }
    }
    if (pattern.empty() && text.empty()) return true;
    if (star.set && !star.text.empty() && star.text[0] != '/') {
      star.text.remove_prefix(1);
      pattern = star.pattern;
      text = star.text;
      continue;
    }
    star.set = false;
    if (!stars.set) return false;
    const size_t slash = stars.text.find('/');
    if (slash == std::string_view::npos) return false;
    stars.text.remove_prefix(slash + 1);
    pattern = stars.pattern;
    text = stars.text;
  }
}

}  // namespace

IgnoreRules IgnoreRules::Defaults() {
  IgnoreRules rules;
  rules.Add(".git/\n.hg/\n.svn/\n__pycache__/\n*.pyc\n");
  // output/<time>_<job>/: logs grow, and are of no use there. (\? against trigraphs.)
  rules.Add("???\?-?\?-?\?_?\?-?\?-?\?_*/\n");
  return rules;
}

void IgnoreRules::Add(std::string_view text) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    while (line.ends_with(' ') && !line.ends_with("\\ ")) line.remove_suffix(1);
    if (line.empty() || line[0] == '#') continue;
    Rule rule;
    rule.negated = line[0] == '!';
    if (rule.negated) line.remove_prefix(1);
    rule.folders_only = line.ends_with('/');
    if (rule.folders_only) line.remove_suffix(1);
    rule.anchored = line.find('/') != std::string_view::npos;
    if (line.starts_with('/')) line.remove_prefix(1);
    rule.pattern = line;
    if (!rule.pattern.empty()) rules_.push_back(std::move(rule));
  }
}

bool IgnoreRules::Ignores(std::string_view path, bool is_folder) const {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  bool ignored = false;
  for (const Rule& rule : rules_) {
    if (rule.folders_only && !is_folder) continue;
    if (Glob(rule.pattern, rule.anchored ? path : name)) ignored = !rule.negated;
  }
  return ignored;
}

}  // namespace muster::stage
