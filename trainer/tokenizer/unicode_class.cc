#include "trainer/tokenizer/unicode_class.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace muster::tokenizer {
namespace {

#include "trainer/tokenizer/unicode_ranges.inc"
#include "trainer/tokenizer/word_ranges.inc"

constexpr CodePointRange kSpaces[] = {
    {0x9, 0xd},       {0x20, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680},
    {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}};

constexpr uint32_t kCodePoints = 0x110000;

std::vector<CharClass> MakeTable() {
  std::vector<CharClass> table(kCodePoints, CharClass::kOther);
  const auto fill = [&table](std::span<const CodePointRange> ranges, CharClass value) {
    for (const CodePointRange& range : ranges) {
      std::fill(table.begin() + range.first, table.begin() + range.last + 1, value);
    }
  };
  fill(kLetters, CharClass::kLetter);
  fill(kNumbers, CharClass::kNumber);
  fill(kSpaces, CharClass::kSpace);
  return table;
}

}  // namespace

const CharClass* ClassTable() {
  static const std::vector<CharClass>* const table = new std::vector<CharClass>(MakeTable());
  return table->data();
}

CharClass ClassOf(uint32_t code_point) {
  return ClassTable()[code_point];
}

bool IsWord(uint32_t code_point) {
  const auto* after = std::upper_bound(
      std::begin(kWords), std::end(kWords), code_point,
      [](uint32_t code, const CodePointRange& range) { return code < range.first; });
  return after != std::begin(kWords) && code_point <= (after - 1)->last;
}

std::span<const CodePointRange> SpaceRanges() {
  return kSpaces;
}

std::span<const CodePointRange> PropertyRanges(std::string_view name) {
  struct Property {
    std::string_view name;
    std::span<const CodePointRange> ranges;
  };
  static constexpr Property kProperties[] = {
      {"L", kLetters},    {"N", kNumbers},     {"Lu", kUpperCase},    {"Ll", kLowerCase},
      {"Lt", kTitleCase}, {"Lm", kModifiers},  {"Lo", kOtherLetters}, {"M", kMarks},
      {"Nd", kDigits},    {"P", kPunctuation}, {"S", kSymbols},       {"Han", kHan}};
  for (const Property& property : kProperties) {
    if (property.name == name) return property.ranges;
  }
  return {};
}

std::optional<int> DecimalValue(uint32_t code_point) {
  const auto* after =
      std::upper_bound(std::begin(kDecimalZeros), std::end(kDecimalZeros), code_point);
  if (after == std::begin(kDecimalZeros)) return std::nullopt;
  const uint32_t value = code_point - *(after - 1);
  return value < 10 ? std::optional<int>(static_cast<int>(value)) : std::nullopt;
}

}  // namespace muster::tokenizer
