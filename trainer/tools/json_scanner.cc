#include "trainer/tools/json_scanner.h"

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
  while (at_ < text_.size() &&
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

bool JsonScanner::ReadString(std::string& out) {
  Expect('"', "a string in double quotes");
  out.clear();
  bool whole = true;
  while (true) {
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
           static_cast<uint8_t>(text_[at_]) >= 0x20) {
      ++at_;
    }
    out.append(text_, begin, at_ - begin);
    if (AtEnd()) Fail("the string does not end");
    if (Take('"')) return whole;
    if (!Take('\\')) Fail("a control character in a string must be escaped");
    whole = ReadEscape(out) && whole;
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
  if (IsHighSurrogate(code) && text_.substr(at_, 2) == "\\u") {
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
      ReadString(skipped_);
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
        ReadString(skipped_);
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
  if (text_.substr(at_, word.size()) != word) Fail("expected a value");
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
