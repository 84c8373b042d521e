#include "trainer/tokenizer/null_tokenizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "trainer/tokenizer/unicode_class.h"
#include "trainer/tokenizer/utf8.h"

namespace muster::tokenizer {
namespace {

// Python's int(word): white space around, a sign, digits of any script, single underscores between
// digits.
std::optional<int32_t> PythonInt(std::string_view word) {
  std::u32string chars;
  for (size_t at = 0; at < word.size();) chars.push_back(NextCodePoint(word, at));
  size_t begin = 0;
  size_t end = chars.size();
  while (begin < end && IsPythonSpace(chars[begin])) ++begin;
  while (end > begin && IsPythonSpace(chars[end - 1])) --end;
  const bool negative = begin < end && chars[begin] == '-';
  if (begin < end && (chars[begin] == '-' || chars[begin] == '+')) ++begin;
  constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();
  int64_t value = 0;
  bool after_digit = false;
  for (size_t i = begin; i < end; ++i) {
    if (chars[i] == '_' && after_digit) {
      after_digit = false;
      continue;
    }
    const auto digit = DecimalValue(chars[i]);
    if (!digit) return std::nullopt;
    value = value * 10 + *digit;
    if (value > kLimit) return std::nullopt;
    after_digit = true;
  }
  if (!after_digit) return std::nullopt;
  return static_cast<int32_t>(negative ? -value : value);
}

class NullEncoder : public Encoder {
 public:
  void Encode(std::string_view text, std::vector<int32_t>& ids) override {
    for (size_t begin = 0;;) {
      const size_t end = std::min(text.find(' ', begin), text.size());
      const std::string_view word = text.substr(begin, end - begin);
      const auto id = PythonInt(word);
      if (!id) throw TokenizerError(fmt::format("'{}' is not the number of a token", word));
      ids.push_back(*id);
      if (end == text.size()) return;
      begin = end + 1;
    }
  }
};

}  // namespace

NullTokenizer::NullTokenizer(int64_t vocab_size) : vocab_size_(vocab_size) {
  if (vocab_size < 1 || vocab_size > std::numeric_limits<int32_t>::max()) {
    throw TokenizerError("NullTokenizer needs --vocab-size (at least 1)");
  }
}

std::unique_ptr<Encoder> NullTokenizer::NewEncoder(const EncoderOptions& /*options*/) const {
  return std::make_unique<NullEncoder>();
}

std::string NullTokenizer::Decode(std::span<const int32_t> ids) const {
  return fmt::format("{}", fmt::join(ids, " "));
}

}  // namespace muster::tokenizer
