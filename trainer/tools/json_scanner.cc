#include "trainer/tools/json_scanner.h"

#include <cstring>

#include "trainer/tokenizer/utf8.h"
#include "trainer/tools/json_line.h"

namespace muster::tools {
namespace {

constexpr int kMaxDepth = 1000;             // Python's recursion limit
constexpr size_t kMaxIntegerDigits = 4300;  // Python's too

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
bool IsHighSurrogate(uint32_t code) {
  return code >= 0xd800 && code <= 0xdbff;
}
bool IsLowSurrogate(uint32_t code) {
  return code >= 0xdc00 && code <= 0xdfff;
}

}  // namespace

void JsonScanner::SkipSpace() {
  while (at_ < size_ &&
         (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
    ++at_;
  }
}

bool JsonScanner::Take(char c) {
  if (AtEnd() || text_[at_] != c) return false;
  ++at_;
  return true;
}

void JsonScanner::Expect(char c, const char* what) {
  if (!Take(c)) Fail(std::string("expected ") + what);
}

void JsonScanner::Fail(const std::string& reason) const {
  throw LineError(at_ + 1, reason);
}

void JsonScanner::SkipPlain() {
  // Eight bytes at a time; a byte of `x - kOnes & ~x & kHighs` says that x has a zero byte there.
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kHighs = 0x8080808080808080;
  const auto has_zero = [](uint64_t x) { return (x - kOnes) & ~x & kHighs; };
  for (; at_ + 8 <= size_; at_ += 8) {
    uint64_t eight;
    std::memcpy(&eight, text_ + at_, sizeof(eight));
    const uint64_t control = (eight - kOnes * 0x20) & ~eight & kHighs;
    if ((has_zero(eight ^ kOnes * '"') | has_zero(eight ^ kOnes * '\\') | control) != 0) break;
  }
  while (at_ < size_ && text_[at_] != '"' && text_[at_] != '\\' &&
         static_cast<uint8_t>(text_[at_]) >= 0x20) {
    ++at_;
  }
}

JsonScanner::String JsonScanner::ReadString() {
  Expect('"', "a string in double quotes");
  char* const begin = text_ + at_;
  char* end = begin;  // of the decoded text
  bool whole = true;
  while (true) {
    const size_t plain = at_;
    SkipPlain();
    const size_t size = at_ - plain;
    if (end != text_ + plain) std::memmove(end, text_ + plain, size);
    end += size;
    if (AtEnd()) Fail("the string does not end");
    if (Take('"')) return {{begin, static_cast<size_t>(end - begin)}, whole};
    if (!Take('\\')) Fail("a control character in a string must be escaped");
    escaped_.clear();
    whole = ReadEscape(escaped_) && whole;
    // Never longer than the escape was.
    std::memcpy(end, escaped_.data(), escaped_.size());
    end += escaped_.size();
  }
}

bool JsonScanner::ReadEscape(std::string& out) {
  if (AtEnd()) Fail("the string does not end");
  static constexpr std::string_view kNames = "\"\\/bfnrt";
  static constexpr std::string_view kValues = "\"\\/\b\f\n\r\t";
  const size_t simple = kNames.find(text_[at_]);
  if (simple != std::string_view::npos) {
    out.push_back(kValues[simple]);
    ++at_;
    return true;
  }
  if (!Take('u')) Fail("unknown escape in a string");
  uint32_t code = ReadHex4();
  if (IsHighSurrogate(code) && Rest().starts_with("\\u")) {
    const size_t before = at_;
    at_ += 2;
    const uint32_t low = ReadHex4();
    if (IsLowSurrogate(low)) {
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else {
      at_ = before;
    }
  }
  tokenizer::AppendUtf8(code, out);
  return !IsHighSurrogate(code) && !IsLowSurrogate(code);
}

uint32_t JsonScanner::ReadHex4() {
  uint32_t code = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = Peek();
    const char lower = static_cast<char>(c | 0x20);
    if (IsDigit(c)) {
      code = code << 4 | static_cast<uint32_t>(c - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      code = code << 4 | static_cast<uint32_t>(lower - 'a' + 10);
    } else {
      Fail("\\u needs four hexadecimal digits");
    }
    ++at_;
  }
  return code;
}

void JsonScanner::SkipValue() {
  switch (Peek()) {
    case '"':
      ReadString();
      return;
    case '{':
      return SkipContainer('}');
    case '[':
      return SkipContainer(']');
    case 't':
      return SkipWord("true");
    case 'f':
      return SkipWord("false");
    case 'n':
      return SkipWord("null");
    case 'N':
      return SkipWord("NaN");
    case 'I':
      return SkipWord("Infinity");
    default:
      return SkipNumber();
  }
}

void JsonScanner::SkipContainer(char close) {
  ++at_;
  if (++depth_ > kMaxDepth) Fail("nested too deeply");
  SkipSpace();
  if (!Take(close)) {
    do {
      SkipSpace();
      if (close == '}') {
        if (Peek() != '"') Fail("expected a name in double quotes");
        ReadString();
        SkipSpace();
        Expect(':', "':' after the name");
        SkipSpace();
      }
      SkipValue();
      SkipSpace();
    } while (Take(','));
    Expect(close, close == '}' ? "',' or '}'" : "',' or ']'");
  }
  --depth_;
}

void JsonScanner::SkipWord(std::string_view word) {
  if (!Rest().starts_with(word)) Fail("expected a value");
  at_ += word.size();
}

size_t JsonScanner::SkipDigits() {
  const size_t begin = at_;
  while (IsDigit(Peek())) ++at_;
  return at_ - begin;
}

void JsonScanner::SkipNumber() {
  const size_t begin = at_;
  if (Take('-') && Peek() == 'I') return SkipWord("Infinity");
  const bool zero = Peek() == '0';
  const size_t digits = SkipDigits();
  if (digits == 0 || (zero && digits > 1)) {
    at_ = begin;
    Fail("expected a value");
  }
  bool integer = true;
  if (Peek() == '.') {
    ++at_;
    integer = false;
    if (SkipDigits() == 0) Fail("expected a digit after the point");
  }
  if (Peek() == 'e' || Peek() == 'E') {
    ++at_;
    integer = false;
    if (!Take('+')) Take('-');
    if (SkipDigits() == 0) Fail("expected a digit in the exponent");
  }
  if (integer && digits > kMaxIntegerDigits) Fail("an integer of more than 4300 digits");
}

}  // namespace muster::tools
