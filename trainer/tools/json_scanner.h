#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster::tools {

// A strict scanner over one JSON text with the rules of Python's json module. Strings are decoded
// in place, over the text that is behind the scanner. Throws LineError.
class JsonScanner {
 public:
  // `text` must outlive the scanner and the strings it returns.
  JsonScanner(char* text, size_t size) : text_(text), size_(size) {}

  void SkipSpace();
  bool AtEnd() const { return at_ == size_; }
  // The next byte, or 0 at the end.
  char Peek() const { return AtEnd() ? '\0' : text_[at_]; }
  // Takes `c` if it comes next.
  bool Take(char c);
  // Takes `c`, or fails naming `what`.
  void Expect(char c, const char* what);
  // Fails at the next byte.
  [[noreturn]] void Fail(const std::string& reason) const;

  // A string, without its quotes.
  struct String {
    std::string_view text;
    bool whole = true;  // false: it holds a lone surrogate, as three bytes that are not UTF-8
  };
  String ReadString();
  // Any value, checked and dropped.
  void SkipValue();

 private:
  // Goes to the next quote, backslash or control character.
  void SkipPlain();
  void SkipContainer(char close);
  void SkipNumber();
  void SkipWord(std::string_view word);
  size_t SkipDigits();
  std::string_view Rest() const { return {text_ + at_, size_ - at_}; }
  // Appends the character of an escape; the backslash is taken already. False: a lone surrogate.
  bool ReadEscape(std::string& out);
  uint32_t ReadHex4();

  char* text_;
  size_t size_;
  size_t at_ = 0;
  int depth_ = 0;
  std::string escaped_;
};

}  // namespace muster::tools
