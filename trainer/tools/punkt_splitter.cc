#include "trainer/tools/punkt_splitter.h"

#include <algorithm>
#include <utility>

#include "trainer/tools/punkt_words.h"
#include "trainer/tools/text_class.h"

namespace muster::tools {
namespace {

constexpr int64_t kPartCharacters = 1'000'000;  // Megatron cuts longer texts first

bool IsEndMark(char c) {
  return c == '.' || c == '?' || c == '!';
}

bool IsSpaceAt(std::string_view text, size_t at) {
  return IsSpace(CharacterAt(text, at).code);
}

size_t SkipSpaces(std::string_view text, size_t at) {
  while (at < text.size() && IsSpaceAt(text, at)) at += CharacterAt(text, at).size;
  return at;
}

size_t SkipOthers(std::string_view text, size_t at) {
  while (at < text.size() && !IsSpaceAt(text, at)) at += CharacterAt(text, at).size;
  return at;
}

// Closing quotes and brackets at the start of `text` that belong to the sentence before it.
struct Closing {
  size_t size = 0;  // with the spaces behind them; 0: none
  size_t kept = 0;  // without
};

Closing FindClosing(std::string_view text) {
  constexpr std::string_view kMarks = "\"')]}";
  for (size_t at = 0; at < text.size();) {
    const Character c = CharacterAt(text, at);
    const bool closing = c.code < 0x80
                             ? kMarks.find(static_cast<char>(c.code)) != std::string_view::npos
                             : IsPunktNonWord(c.code);
    if (!closing) break;
    at += c.size;
    const size_t behind = SkipSpaces(text, at);
    if (behind > at || at == text.size() || text.substr(at).starts_with("--")) {
      return {behind, StripRight(text.substr(0, behind)).size()};
    }
  }
  return {};
}

std::string_view Slice(std::string_view text, size_t begin, size_t end) {
  return begin < end ? text.substr(begin, end - begin) : std::string_view();
}

}  // namespace

PunktSplitter::PunktSplitter(PunktModel model, bool keep_newlines)
    : model_(std::move(model)), keep_newlines_(keep_newlines) {}

void PunktSplitter::Split(std::string_view text, std::vector<std::string_view>& sentences) const {
  while (!text.empty()) {
    size_t end = 0;
    for (int64_t i = 0; i < kPartCharacters && end < text.size(); ++i) {
      end += CharacterAt(text, end).size;
    }
    SplitPart(text.substr(0, end), sentences);
    text = text.substr(end);
  }
}

std::vector<PunktSplitter::Candidate> PunktSplitter::Candidates(std::string_view text) const {
  std::vector<Candidate> candidates;
  const auto add = [&](size_t begin, size_t end, size_t token) {
    const Character c = CharacterAt(text, token);
    const bool is_mark = IsPunktNonWord(c.code);
    // A mark right behind: the sentence goes on with it. Else it goes on with the next token.
    candidates.push_back(
        {begin, end, is_mark ? token + c.size : SkipOthers(text, token), is_mark ? end : token});
  };
  if (!keep_newlines_) {
    for (size_t at = 0; at < text.size(); ++at) {
      if (!IsEndMark(text[at]) || at + 1 == text.size()) continue;
      const bool is_mark = IsPunktNonWord(CharacterAt(text, at + 1).code);
      const size_t token = SkipSpaces(text, at + 1);
      if (is_mark) {
        add(at, at + 1, at + 1);
      } else if (token > at + 1 && token < text.size()) {
        candidates.push_back({at, at + 1, SkipOthers(text, token), token});
      }
    }
    return candidates;
  }
  for (size_t begin = SkipSpaces(text, 0); begin < text.size();) {
    const size_t run_end = SkipOthers(text, begin);
    const size_t next_run = SkipSpaces(text, run_end);
    // The last end mark of the run with something behind it.
    size_t mark = next_run < text.size() ? run_end : run_end - 1;
    while (mark > begin && !IsEndMark(text[mark - 1])) --mark;
    if (mark == begin) {
      begin = next_run;
      continue;
    }
    const size_t end = mark == run_end ? next_run : mark;
    add(begin, end, end);
    begin = end;
  }
  return candidates;
}

bool PunktSplitter::EndsSentence(std::string_view context) const {
  const std::vector<PunktToken> tokens = AnnotateWords(context, model_);
  // The last token is what follows: it does not count.
  return std::any_of(tokens.begin(), tokens.end() - (tokens.empty() ? 0 : 1),
                     [](const PunktToken& token) { return token.sentence_break; });
}

std::vector<PunktSplitter::Span> PunktSplitter::Spans(std::string_view text) const {
  constexpr std::string_view kAsciiSpace = " \t\n\r\v\f";
  std::vector<Span> spans;
  size_t last_break = 0;
  const auto decide = [&](const Candidate& candidate, size_t word) {
    if (!EndsSentence(text.substr(word, candidate.after_end - word))) return;
    spans.push_back({last_break, candidate.end});
    last_break = candidate.next;
  };
  // Of the candidates that end one word, such as "what?!", the last one counts.
  const Candidate* previous = nullptr;
  Span word{0, 0};  // before the end mark of `previous`
  const std::vector<Candidate> candidates = Candidates(text);
  for (const Candidate& candidate : candidates) {
    const std::string_view before = text.substr(word.end, candidate.begin - word.end);
    const size_t space = before.find_last_of(kAsciiSpace);
    const bool found = space != std::string_view::npos && space > 0;
    const size_t begin = found ? word.end + space + 1 : word.begin;
    if (previous != nullptr && word.end <= begin) decide(*previous, word.begin);
    previous = &candidate;
    word = {begin, candidate.begin};
  }
  if (previous != nullptr) decide(*previous, word.begin);
  spans.push_back({last_break, StripRight(text).size()});
  return spans;
}

void PunktSplitter::SplitPart(std::string_view text,
                              std::vector<std::string_view>& sentences) const {
  const std::vector<Span> spans = Spans(text);
  size_t moved = 0;  // of the start, to the sentence before
  for (size_t i = 0; i < spans.size(); ++i) {
    const Span span{spans[i].begin + moved, spans[i].end};
    const bool is_last = i + 1 == spans.size();
    const Closing closing =
        is_last ? Closing() : FindClosing(Slice(text, spans[i + 1].begin, spans[i + 1].end));
    moved = closing.size;
    const std::string_view sentence =
        closing.size > 0 ? Slice(text, span.begin, spans[i + 1].begin + closing.kept)
                         : Slice(text, span.begin, span.end);
    if (closing.size > 0 || !sentence.empty()) sentences.push_back(sentence);
  }
}

}  // namespace muster::tools
