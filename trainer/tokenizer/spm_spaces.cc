#include "trainer/tokenizer/spm_spaces.h"

#include "trainer/tokenizer/unicode_class.h"
#include "trainer/tokenizer/utf8.h"

namespace muster::tokenizer {
namespace {

std::string_view StripRight(std::string_view text) {
  while (!text.empty()) {
    const size_t begin = PreviousChar(text, text.size());
    size_t at = begin;
    if (!IsPythonSpace(NextCodePoint(text, at))) break;
    text = text.substr(0, begin);
  }
  return text;
}

}  // namespace

std::string MarkExtraSpaces(std::string_view text) {
  const std::string mark = " " + std::string(kExtraSpace) + " ";
  std::string out;
  const auto is_space = [&](size_t i) { return i < text.size() && text[i] == ' '; };
  for (size_t i = 0; i < text.size(); ++i) {
    if (i > 0 && is_space(i - 1) && is_space(i)) out += mark;
    const size_t rest = text.size() - i - 1;
    // Python's $ is also before a line break that ends the text.
    const bool last = rest == 0 || (rest == 1 && text.back() == '\n');
    if (is_space(i) && (i == 0 || last)) {
      out += mark;
    } else {
      out += text[i];
    }
  }
  return std::string(StripRight(out));
}

std::string PythonStrip(std::string_view text) {
  text = StripRight(text);
  size_t begin = 0;
  for (size_t at = 0; at < text.size(); begin = at) {
    if (!IsPythonSpace(NextCodePoint(text, at))) break;
  }
  return std::string(text.substr(begin));
}

}  // namespace muster::tokenizer
