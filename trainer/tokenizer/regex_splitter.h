#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "trainer/tokenizer/splitter.h"

namespace muster::tokenizer {

// Rewrites a pattern of Hugging Face's engine (Oniguruma, Unicode 16) for PCRE2, whose \s differs
// and whose \p{L} and \p{N} are of an older Unicode.
std::string TranslatePattern(std::string_view pattern);

// Splits around the matches of a regular expression: each match is a piece, each gap between
// matches another.
class RegexSplitter : public Splitter {
 public:
  // `keep_gaps` false drops what lies between matches. Throws TokenizerError with the place of a
  // mistake in the pattern.
  RegexSplitter(std::string_view pattern, bool keep_gaps);
  ~RegexSplitter() override;

  Piece Next(std::string_view text, size_t at) override;
  std::unique_ptr<Splitter> Clone() const override;

 private:
  struct Compiled;  // shared by clones
  struct Scratch;
  RegexSplitter(std::shared_ptr<const Compiled> compiled, bool keep_gaps);

  std::shared_ptr<const Compiled> compiled_;
  std::unique_ptr<Scratch> scratch_;
  bool keep_gaps_;
  // The match that follows the gap given out last; none when begin == end.
  size_t pending_begin_ = 0;
  size_t pending_end_ = 0;
};

}  // namespace muster::tokenizer
