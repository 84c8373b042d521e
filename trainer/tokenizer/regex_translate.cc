#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <span>
#include <string>

#include "trainer/tokenizer/regex_splitter.h"
#include "trainer/tokenizer/unicode_class.h"
#include "trainer/tokenizer/utf8.h"

namespace muster::tokenizer {
namespace {

// "\x{9}-\x{d}\x{20}..." for use inside a class.
std::string ClassItem(uint32_t first, uint32_t last) {
  return first == last ? fmt::format("\\x{{{:x}}}", first)
                       : fmt::format("\\x{{{:x}}}-\\x{{{:x}}}", first, last);
}

std::string SpaceItems() {
  std::string items;
  for (const CodePointRange& range : SpaceRanges()) items += ClassItem(range.first, range.last);
  return items;
}

// PCRE2's own \p{name}, and the members of `ranges` that this version of PCRE2 does not know yet.
std::string PropertyItems(const std::string& name, std::span<const CodePointRange> ranges) {
  const std::string complement = "\\P{" + name + "}";
  std::string members;
  for (const CodePointRange& range : ranges) {
    for (uint32_t c = range.first; c <= range.last; ++c) AppendUtf8(c, members);
  }
  std::string items = "\\p{" + name + "}";
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(complement.c_str()), PCRE2_ZERO_TERMINATED,
                    PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr);
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  pcre2_match_data* match = pcre2_match_data_create_from_pattern(code, nullptr);
  uint32_t first = 1;  // an empty range
  uint32_t last = 0;
  for (size_t at = 0; pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(members.data()),
                                  members.size(), at, PCRE2_NO_UTF_CHECK, match, nullptr) > 0;) {
    at = pcre2_get_ovector_pointer(match)[0];
    const uint32_t c = NextCodePoint(members, at);
    if (first <= last && c == last + 1) {
      last = c;
      continue;
    }
    if (first <= last) items += ClassItem(first, last);
    first = last = c;
  }
  if (first <= last) items += ClassItem(first, last);
  pcre2_match_data_free(match);
  pcre2_code_free(code);
  return items;
}

// A class escape at the front of a pattern, such as \s or \P{Lu}; size 0: none that needs
// rewriting.
struct ClassEscape {
  size_t size = 0;
  bool negated = false;
  std::string items;
};

ClassEscape ReadClassEscape(std::string_view pattern) {
  if (pattern.starts_with("\\s") || pattern.starts_with("\\S")) {
    return {2, pattern[1] == 'S', SpaceItems()};
  }
  if (!pattern.starts_with("\\p{") && !pattern.starts_with("\\P{")) return {};
  const size_t close = pattern.find('}');
  if (close == std::string_view::npos) return {};
  const std::string name(pattern.substr(3, close - 3));
  const auto ranges = PropertyRanges(name);
  if (ranges.empty()) return {};
  return {close + 1, pattern[1] == 'P', PropertyItems(name, ranges)};
}

}  // namespace

std::string TranslatePattern(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t at = 0; at < pattern.size();) {
    const ClassEscape escape = ReadClassEscape(pattern.substr(at));
    // A negated escape inside a class has no list of items: PCRE2's own stands.
    if (escape.size > 0 && !(in_class && escape.negated)) {
      out += in_class ? escape.items : (escape.negated ? "[^" : "[") + escape.items + "]";
      at += escape.size;
      continue;
    }
    if (pattern[at] == '\\' && at + 1 < pattern.size()) {
      out += pattern.substr(at, 2);
      at += 2;
      continue;
    }
    if (pattern[at] == '[') {
      in_class = true;
    } else if (pattern[at] == ']') {
      in_class = false;
    }
    out += pattern[at++];
  }
  return out;
}

}  // namespace muster::tokenizer
