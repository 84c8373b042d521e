#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster::tools {

// A strict scanner over one JSON text with the rules of Python's json module. Throws LineError.
class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text) : text_(text) {}

  void SkipSpace();
  bool AtEnd() const { return at_ == text_.size(); }
  // The next byte, or 0 at the end.
  char Peek() const { return AtEnd() ? '\0' : text_[at_]; }
  // Takes `c` if it comes next.
  bool Take(char c);
  // Takes `c`, or fails naming `what`.
  void Expect(char c, const char* what);
  // Fails at the next byte.
  [[noreturn]] void Fail(const std::string& reason) const;

  // A string, with its quotes. Returns whether it holds only whole characters: a lone surrogate
  // becomes three bytes that are not UTF-8.
  bool ReadString(std::string& out);
  // Any value, checked and dropped.
  void SkipValue();

 private:
  void SkipContainer(char close);
  void SkipNumber();
  void SkipWord(std::string_view word);
  size_t SkipDigits();
  // Appends the character of an escape; the backslash is taken already.
  bool ReadEscape(std::string& out);
  uint32_t ReadHex4();

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  std::string skipped_;
};

}  // namespace muster::tools
