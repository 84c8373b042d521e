#pragma once

#include <memory>
#include <string_view>

#include "trainer/tokenizer/regex_matcher.h"
#include "trainer/tokenizer/splitter.h"

namespace muster::tokenizer {

// What becomes of the matches of a pattern and of the gaps between them (Hugging Face's
// SplitDelimiterBehavior; "matches" are the gaps when the split is inverted).
enum class MatchBehavior {
  kIsolated,            // each a piece
  kRemoved,             // matches are dropped
  kMergedWithPrevious,  // a match joins the gap before it
  kMergedWithNext,      // or the one after it
  kContiguous,          // neighbouring matches join each other
};

// A splitter around the matches of a regular expression. Throws TokenizerError with the place of a
// mistake in the pattern.
std::unique_ptr<Splitter> MakeMatchSplitter(std::string_view pattern, MatchBehavior behavior,
                                            bool invert);

// `text` as a pattern that matches it and nothing else.
std::string EscapePattern(std::string_view text);

}  // namespace muster::tokenizer
