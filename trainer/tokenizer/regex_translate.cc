#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <span>
#include <string>
#include <vector>

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

// PCRE2's own property, and the members of `ranges` that this version of PCRE2 does not know yet.
std::string PropertyItems(const char* property, const char* complement,
                          std::span<const CodePointRange> ranges) {
  std::string members;
  for (const CodePointRange& range : ranges) {
    for (uint32_t c = range.first; c <= range.last; ++c) AppendUtf8(c, members);
  }
  std::string items = property;
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(complement), PCRE2_ZERO_TERMINATED,
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

struct Shorthand {
  std::string_view text;
  std::string items;
  bool negated;
};

const std::vector<Shorthand>& Shorthands() {
  static const auto* const shorthands = [] {
    const std::string space = SpaceItems();
    const std::string letter = PropertyItems("\\p{L}", "\\P{L}", LetterRanges());
    const std::string number = PropertyItems("\\p{N}", "\\P{N}", NumberRanges());
    return new std::vector<Shorthand>{{"\\s", space, false},     {"\\S", space, true},
                                      {"\\p{L}", letter, false}, {"\\P{L}", letter, true},
                                      {"\\p{N}", number, false}, {"\\P{N}", number, true}};
  }();
  return *shorthands;
}

}  // namespace

std::string TranslatePattern(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t at = 0; at < pattern.size();) {
    const Shorthand* found = nullptr;
    for (const Shorthand& shorthand : Shorthands()) {
      // A negated shorthand inside a class has no list of items: PCRE2's own stands.
      if (pattern.substr(at).starts_with(shorthand.text) && !(in_class && shorthand.negated)) {
        found = &shorthand;
      }
    }
    if (found != nullptr) {
      out += in_class ? found->items : (found->negated ? "[^" : "[") + found->items + "]";
      at += found->text.size();
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
