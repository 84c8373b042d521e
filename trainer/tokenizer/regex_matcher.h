#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace muster::tokenizer {

// Rewrites a pattern of Hugging Face's engine (Oniguruma, Unicode 16) for PCRE2, whose \s differs
// and whose properties are of an older Unicode. Throws TokenizerError at what would mean something
// else to PCRE2, or is not known here.
std::string TranslatePattern(std::string_view pattern);

// Walks through the matches of a regular expression and the gaps between them. One thread.
class RegexMatcher {
 public:
  // A match or a gap; neither is empty (an empty match only ends a gap).
  struct Part {
    size_t end;
    bool match;
  };

  // Throws TokenizerError with the place of a mistake in the pattern.
  explicit RegexMatcher(std::string_view pattern);
  ~RegexMatcher();

  // The part that starts at `at` < text.size(), where another one ends.
  Part Next(std::string_view text, size_t at);

  bool can_match_nothing() const;

  std::unique_ptr<RegexMatcher> Clone() const;

 private:
  struct Compiled;  // shared by clones
  struct Scratch;
  explicit RegexMatcher(std::shared_ptr<const Compiled> compiled);

  std::shared_ptr<const Compiled> compiled_;
  std::unique_ptr<Scratch> scratch_;
  // The match that follows the gap given out last; none when begin == end.
  size_t pending_begin_ = 0;
  size_t pending_end_ = 0;
};

}  // namespace muster::tokenizer
