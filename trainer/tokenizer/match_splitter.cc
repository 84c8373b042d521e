#include "trainer/tokenizer/match_splitter.h"

#include <fmt/format.h>

#include <utility>

#include "trainer/tokenizer/llama3_splitter.h"
#include "trainer/tokenizer/tokenizer.h"

namespace muster::tokenizer {
namespace {

class MatchSplitter : public Splitter {
 public:
  MatchSplitter(std::unique_ptr<RegexMatcher> matcher, MatchBehavior behavior, bool invert)
      : matcher_(std::move(matcher)), behavior_(behavior), invert_(invert) {}

  Piece Next(std::string_view text, size_t at) override {
    Part part = Look(text, at);
    switch (behavior_) {
      case MatchBehavior::kIsolated:
        return {part.end, true};
      case MatchBehavior::kRemoved:
        return {part.end, !part.match};
      case MatchBehavior::kMergedWithPrevious:
      case MatchBehavior::kMergedWithNext: {
        const bool match_first = behavior_ == MatchBehavior::kMergedWithNext;
        if (part.match != match_first || part.end == text.size()) return {part.end, true};
        const Part next = Look(text, part.end);
        return {next.match != match_first ? next.end : part.end, true};
      }
      case MatchBehavior::kContiguous:
        while (part.end < text.size()) {
          const Part next = Look(text, part.end);
          if (next.match != part.match) break;
          part.end = next.end;
        }
        return {part.end, true};
    }
    return {text.size(), true};
  }

  std::unique_ptr<Splitter> Clone() const override {
    return std::make_unique<MatchSplitter>(matcher_->Clone(), behavior_, invert_);
  }

 private:
  struct Part {
    size_t end;
    bool match;
  };

  Part Look(std::string_view text, size_t at) {
    const RegexMatcher::Part part = matcher_->Next(text, at);
    return {part.end, part.match != invert_};
  }

  std::unique_ptr<RegexMatcher> matcher_;
  MatchBehavior behavior_;
  bool invert_;
};

}  // namespace

std::unique_ptr<Splitter> MakeMatchSplitter(std::string_view pattern, MatchBehavior behavior,
                                            bool invert) {
  // It matches every text from end to end: nothing else would be kept, and nothing joined.
  const bool all_kept =
      behavior == MatchBehavior::kIsolated || (behavior == MatchBehavior::kRemoved && invert);
  if (pattern == Llama3Splitter::kPattern && all_kept) return std::make_unique<Llama3Splitter>();
  auto matcher = std::make_unique<RegexMatcher>(pattern);
  if (behavior == MatchBehavior::kContiguous && matcher->can_match_nothing()) {
    throw TokenizerError(fmt::format(
        "split pattern '{}': Contiguous, with a pattern that can match nothing, is not supported",
        pattern));
  }
  return std::make_unique<MatchSplitter>(std::move(matcher), behavior, invert);
}

std::string EscapePattern(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        byte >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (byte < 0x20 || byte == 0x7f) {
      pattern += "\\x" + std::string(1, "01234567"[byte >> 4]) + "0123456789abcdef"[byte & 0xf];
    } else {
      if (!plain) pattern += '\\';
      pattern += c;
    }
  }
  return pattern;
}

}  // namespace muster::tokenizer
