#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <cctype>
#include <span>
#include <string>

#include "trainer/tokenizer/regex_matcher.h"
#include "trainer/tokenizer/tokenizer.h"
#include "trainer/tokenizer/unicode_class.h"
#include "trainer/tokenizer/utf8.h"

namespace muster::tokenizer {
namespace {

// "\x{9}-\x{d}\x{20}..." for use inside a class.
std::string ClassItem(uint32_t first, uint32_t last) {
  return first == last ? fmt::format("\\x{{{:x}}}", first)
                       : fmt::format("\\x{{{:x}}}-\\x{{{:x}}}", first, last);
}

std::string Items(std::span<const CodePointRange> ranges) {
  std::string items;
  for (const CodePointRange& range : ranges) items += ClassItem(range.first, range.last);
  return items;
}

// What lies between the ranges.
std::string ComplementItems(std::span<const CodePointRange> ranges) {
  constexpr uint32_t kLastCodePoint = 0x10ffff;
  std::string items;
  uint32_t next = 0;
  const auto add = [&items](uint32_t first, uint32_t last) {  // PCRE2 wants no surrogates
    if (first < 0xd800) items += ClassItem(first, std::min<uint32_t>(last, 0xd7ff));
    if (last > 0xdfff) items += ClassItem(std::max<uint32_t>(first, 0xe000), last);
  };
  for (const CodePointRange& range : ranges) {
    if (range.first > next) add(next, range.first - 1);
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) add(next, kLastCodePoint);
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

// Walks through a pattern and writes PCRE2's.
class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  std::string Run() {
    while (at_ < pattern_.size()) Step();
    return std::move(out_);
  }

 private:
  [[noreturn]] void Refuse(std::string_view what) const {
    throw TokenizerError(fmt::format("split pattern '{}': '{}' at character {} is not supported",
                                     pattern_, what, at_));
  }

  std::string_view Rest() const { return pattern_.substr(at_); }

  void Copy(size_t size) {
    out_ += pattern_.substr(at_, size);
    at_ += size;
  }

  void Step() {
    const char c = pattern_[at_];
    if (c == '\\') {
      Escape();
    } else if (in_class_) {
      ClassStep(c);
    } else if (c == '[') {
      in_class_ = true;
      const size_t size = Rest().starts_with("[^") ? 2 : 1;
      if (Rest().substr(size).starts_with("]")) Refuse("[]");
      Copy(size);
    } else if (c == '(') {
      Group();
    } else if (c == '^' || c == '$') {
      Refuse(pattern_.substr(at_, 1));  // of every line in Oniguruma, of the text in PCRE2
    } else if (Rest().starts_with("{,") || Rest().starts_with("}+")) {
      Refuse(Rest().substr(0, 2));  // "up to" there, as written here; repeated there, atomic here
    } else {
      Copy(1);
    }
  }

  void ClassStep(char c) {
    // A class in a class, and "&&", mean other things to PCRE2.
    if (c == '[' || Rest().starts_with("&&")) Refuse(Rest().substr(0, 2));
    if (c == ']') in_class_ = false;
    Copy(1);
  }

  void Group() {
    for (const std::string_view opening : {"(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>"}) {
      if (Rest().starts_with(opening)) return Copy(opening.size());
    }
    if (Rest().starts_with("(?") || Rest().starts_with("(*")) Refuse(Rest().substr(0, 3));
    Copy(1);
  }

  // A list of items, or its complement, in or outside of brackets.
  void Class(const std::string& items, size_t size) {
    out_ += in_class_ ? items : "[" + items + "]";
    at_ += size;
  }

  void Escape() {
    if (at_ + 1 == pattern_.size()) Refuse("\\");
    const char c = pattern_[at_ + 1];
    switch (c) {
      case 's':
        return Class(Items(SpaceRanges()), 2);
      case 'S':
        return Class(ComplementItems(SpaceRanges()), 2);
      case 'd':
        return Class(PropertyItems("Nd", PropertyRanges("Nd")), 2);
      case 'D':
        return Class(ComplementItems(PropertyRanges("Nd")), 2);
      case 'p':
      case 'P':
        return Property(c == 'P');
      case 'n':
      case 'r':
      case 't':
      case 'x':
        return Copy(2);
      default:
        break;
    }
    // A letter or digit may be an escape of one engine or the other; anything else is itself.
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || std::isalnum(byte) != 0) Refuse(pattern_.substr(at_, 2));
    Copy(2);
  }

  void Property(bool negated) {
    const size_t close = pattern_.find('}', at_);
    if (close == std::string_view::npos || !Rest().substr(2).starts_with("{")) {
      Refuse(Rest().substr(0, 3));
    }
    std::string_view name = pattern_.substr(at_ + 3, close - at_ - 3);
    if (name.starts_with("^")) {
      negated = !negated;
      name.remove_prefix(1);
    }
    const auto ranges = PropertyRanges(name);
    if (ranges.empty()) Refuse(pattern_.substr(at_, close + 1 - at_));
    // A script is more than the property of that name to PCRE2.
    const std::string items =
        name == "Han" ? Items(ranges) : PropertyItems(std::string(name), ranges);
    Class(negated ? ComplementItems(ranges) : items, close + 1 - at_);
  }

  const std::string_view pattern_;
  size_t at_ = 0;
  bool in_class_ = false;
  std::string out_;
};

}  // namespace

std::string TranslatePattern(std::string_view pattern) {
  return Translator(pattern).Run();
}

}  // namespace muster::tokenizer
