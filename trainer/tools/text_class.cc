#include "trainer/tools/text_class.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "trainer/tokenizer/utf8.h"

namespace muster::tools {
namespace {

struct Range {
  int32_t first;
  int32_t last;
};

// Unicode's Other_Lowercase and Other_Uppercase: cased, but no letters of case.
constexpr Range kOtherLower[] = {
    {0xaa, 0xaa},       {0xba, 0xba},       {0x2b0, 0x2b8},     {0x2c0, 0x2c1},    {0x2e0, 0x2e4},
    {0x345, 0x345},     {0x37a, 0x37a},     {0x1d2c, 0x1d6a},   {0x1d78, 0x1d78},  {0x1d9b, 0x1dbf},
    {0x2071, 0x2071},   {0x207f, 0x207f},   {0x2090, 0x209c},   {0x2170, 0x217f},  {0x24d0, 0x24e9},
    {0x2c7c, 0x2c7d},   {0xa69c, 0xa69d},   {0xa770, 0xa770},   {0xa7f8, 0xa7f9},  {0xab5c, 0xab5f},
    {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107b0}, {0x107b2, 0x107ba}};
constexpr Range kOtherUpper[] = {
    {0x2160, 0x216f}, {0x24b6, 0x24cf}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};
// Letters by \w that are of no letter category.
constexpr Range kOtherLetter[] = {
    {0x200c, 0x200d}, {0x24b6, 0x24e9}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};
// Unicode's Case_Ignorable, beside whole categories.
constexpr Range kIgnorable[] = {
    {0x27, 0x27},     {0x2e, 0x2e},     {0x3a, 0x3a},     {0xb7, 0xb7},
    {0x387, 0x387},   {0x55f, 0x55f},   {0x5f4, 0x5f4},   {0x2018, 0x2019},
    {0x2024, 0x2024}, {0x2027, 0x2027}, {0xfe13, 0xfe13}, {0xfe52, 0xfe52},
    {0xfe55, 0xfe55}, {0xff07, 0xff07}, {0xff0e, 0xff0e}, {0xff1a, 0xff1a}};

template <size_t kSize>
bool IsIn(int32_t code, const Range (&ranges)[kSize]) {
  return std::any_of(std::begin(ranges), std::end(ranges), [code](const Range& range) {
    return code >= range.first && code <= range.last;
  });
}

bool IsCased(int32_t code) {
  return IsUpper(code) || IsLower(code) || ::utf8proc_category(code) == UTF8PROC_CATEGORY_LT;
}

bool IsCaseIgnorable(int32_t code) {
  switch (::utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return IsIn(code, kIgnorable);
  }
}

// Whether a cased character comes first in `text` when ignorable ones are passed over.
bool StartsCased(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Character c = CharacterAt(text, at);
    if (!IsCaseIgnorable(c.code)) return IsCased(c.code);
    at += c.size;
  }
  return false;
}

bool EndsCased(std::string_view text) {
  while (!text.empty()) {
    size_t at = text.size() - 1;
    while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80) --at;
    const int32_t code = CharacterAt(text, at).code;
    if (!IsCaseIgnorable(code)) return IsCased(code);
    text = text.substr(0, at);
  }
  return false;
}

}  // namespace

Character CharacterAt(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return static_cast<int32_t>(static_cast<uint8_t>(text[at + i]));
  };
  const int32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xe0) return {(first & 0x1f) << 6 | (byte(1) & 0x3f), 2};
  if (first < 0xf0) {
    return {(first & 0xf) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f), 3};
  }
  return {(first & 0x7) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f),
          4};
}

bool IsSpace(int32_t code) {
  if (code < 0x80) return code == ' ' || (code >= 0x09 && code <= 0x0d);
  return code == 0x85 || code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) ||
         code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

bool IsStripped(int32_t code) {
  return IsSpace(code) || (code >= 0x1c && code <= 0x1f);
}

bool IsDecimal(int32_t code) {
  if (code < 0x80) return code >= '0' && code <= '9';
  return ::utf8proc_category(code) == UTF8PROC_CATEGORY_ND;
}

bool IsUpper(int32_t code) {
  if (code < 0x80) return code >= 'A' && code <= 'Z';
  return ::utf8proc_category(code) == UTF8PROC_CATEGORY_LU || IsIn(code, kOtherUpper);
}

bool IsLower(int32_t code) {
  if (code < 0x80) return code >= 'a' && code <= 'z';
  return ::utf8proc_category(code) == UTF8PROC_CATEGORY_LL || IsIn(code, kOtherLower);
}

bool IsLetter(int32_t code) {
  switch (::utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return IsIn(code, kOtherLetter);
  }
}

std::string ToLower(std::string_view text) {
  constexpr int32_t kCapitalSigma = 0x3a3;
  constexpr int32_t kFinalSigma = 0x3c2;
  constexpr int32_t kDottedI = 0x130;
  std::string lower;
  for (size_t at = 0; at < text.size();) {
    const Character c = CharacterAt(text, at);
    const bool is_final = c.code == kCapitalSigma && EndsCased(text.substr(0, at)) &&
                          !StartsCased(text.substr(at + c.size));
    at += c.size;
    if (c.code < 0x80) {
      lower.push_back(static_cast<char>(IsUpper(c.code) ? c.code + ('a' - 'A') : c.code));
    } else if (c.code == kDottedI) {
      lower += "i\u0307";
    } else {
      tokenizer::AppendUtf8(
          static_cast<uint32_t>(is_final ? kFinalSigma : ::utf8proc_tolower(c.code)), lower);
    }
  }
  return lower;
}

std::string_view StripRight(std::string_view text) {
  while (!text.empty()) {
    size_t at = text.size() - 1;
    while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80) --at;
    if (!IsStripped(CharacterAt(text, at).code)) break;
    text = text.substr(0, at);
  }
  return text;
}

bool IsBlank(std::string_view text) {
  return StripRight(text).empty();
}

}  // namespace muster::tools
