#include "trainer/tokenizer/added_tokens.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "trainer/tokenizer/unicode_class.h"
#include "trainer/tokenizer/utf8.h"

namespace muster::tokenizer {
namespace {

bool IsWordChar(std::string_view text, size_t at) {
  return IsWord(NextCodePoint(text, at));
}

bool IsSpace(std::string_view text, size_t at) {
  return ClassOf(NextCodePoint(text, at)) == CharClass::kSpace;
}

bool StandsAlone(std::string_view text, size_t begin, size_t end) {
  const bool before = begin > 0 && IsWordChar(text, PreviousChar(text, begin));
  const bool after = end < text.size() && IsWordChar(text, end);
  return !before && !after;
}

size_t SpacesBefore(std::string_view text, size_t begin, size_t limit) {
  while (begin > limit) {
    const size_t previous = PreviousChar(text, begin);
    if (!IsSpace(text, previous)) break;
    begin = previous;
  }
  return std::max(begin, limit);
}

size_t SpacesAfter(std::string_view text, size_t end) {
  while (end < text.size() && IsSpace(text, end)) NextCodePoint(text, end);
  return end;
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    if (!tokens_[i].content.empty()) Insert(tokens_[i].content, static_cast<int32_t>(i));
  }
  for (const Edge& edge : nodes_[0].edges) first_[edge.byte] = edge.node;
  if (nodes_[0].edges.size() == 1) only_first_byte_ = nodes_[0].edges[0].byte;
}

int32_t AddedTokenFinder::Child(int32_t node, uint8_t byte) const {
  for (const Edge& edge : nodes_[node].edges) {
    if (edge.byte == byte) return edge.node;
  }
  return 0;
}

void AddedTokenFinder::Insert(std::string_view content, int32_t token) {
  int32_t node = 0;
  for (const char c : content) {
    const auto byte = static_cast<uint8_t>(c);
    int32_t child = Child(node, byte);
    if (child == 0) {
      child = static_cast<int32_t>(nodes_.size());
      nodes_[node].edges.push_back({byte, child});
      nodes_.emplace_back();
    }
    node = child;
  }
  nodes_[node].token = token;
}

AddedTokenFinder::Match AddedTokenFinder::FindFrom(std::string_view text, size_t at) const {
  for (size_t begin = at; begin < text.size(); ++begin) {
    if (only_first_byte_ >= 0) {
      const void* found = std::memchr(text.data() + begin, only_first_byte_, text.size() - begin);
      if (found == nullptr) break;
      begin = static_cast<size_t>(static_cast<const char*>(found) - text.data());
    }
    Match longest{begin, begin, -1};
    int32_t node = first_[static_cast<uint8_t>(text[begin])];
    for (size_t end = begin + 1; node != 0; ++end) {
      if (nodes_[node].token >= 0) longest = {begin, end, nodes_[node].token};
      if (end == text.size()) break;
      node = Child(node, static_cast<uint8_t>(text[end]));
    }
    if (longest.token >= 0) return longest;
  }
  return {text.size(), text.size(), -1};
}

void AddedTokenFinder::Split(std::string_view text,
                             const std::function<void(const Stretch&)>& use) const {
  size_t plain = 0;  // where the text that is not yet given out begins
  size_t at = 0;
  while (nodes_.size() > 1 && at < text.size()) {
    const Match match = FindFrom(text, at);
    if (match.token < 0) break;
    at = match.end;
    const AddedToken& token = tokens_[match.token];
    if (token.as_text) continue;
    if (token.single_word && !StandsAlone(text, match.begin, match.end)) continue;
    const size_t begin =
        token.lstrip ? SpacesBefore(text, match.begin, std::min(plain, match.begin)) : match.begin;
    const size_t end = token.rstrip ? SpacesAfter(text, match.end) : match.end;
    if (plain < begin) use({text.substr(plain, begin - plain), -1});
    use({text.substr(begin, end - begin), token.id});
    plain = end;
  }
  if (plain < text.size()) use({text.substr(plain), -1});
}

}  // namespace muster::tokenizer
