#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <queue>
#include <span>

#include "trainer/tokenizer/bpe_model.h"
#include "trainer/tokenizer/tokenizer.h"
#include "trainer/tokenizer/utf8.h"

namespace muster::tokenizer {
namespace {

constexpr uint32_t kNoRank = std::numeric_limits<uint32_t>::max();
// Entries of the cache of each encoder, while there are few: a power of two.
constexpr size_t kCacheEntries = size_t{1} << 16;
// Above it the heap is faster than scanning for the lowest rank again and again.
constexpr size_t kShortWord = 96;

struct Candidate {
  uint32_t rank;
  int32_t position;
  int32_t result;
  // For a heap with the lowest rank on top; of equal ranks the leftmost.
  bool operator<(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : position > other.position;
  }
};

size_t CacheEntries(size_t threads) {
  return std::max<size_t>(1, kCacheEntries * Tokenizer::kFullEncoders /
                                 std::bit_ceil(std::max(threads, Tokenizer::kFullEncoders)));
}

}  // namespace

BpeEncoder::BpeEncoder(const BpeModel& model, size_t threads)
    : model_(model), cache_(CacheEntries(threads)) {}

void BpeEncoder::Encode(std::string_view word, std::vector<int32_t>& ids) {
  if (word.size() > WordKey::kMaxBytes) {
    EncodeUncached(word, ids);
    return;
  }
  const WordKey key = WordKey::Of(word);
  CacheEntry& entry = cache_[key.Hash() & (cache_.size() - 1)];
  if (entry.key == key) {
    for (uint32_t i = 0; i < entry.count; ++i) ids.push_back(entry.ids[i]);
    return;
  }
  const size_t before = ids.size();
  EncodeUncached(word, ids);
  const size_t count = ids.size() - before;
  if (count > CacheEntry::kMaxIds) return;
  entry.key = key;
  entry.count = static_cast<uint32_t>(count);
  std::copy_n(ids.data() + before, count, entry.ids);
}

void BpeEncoder::EncodeUncached(std::string_view word, std::vector<int32_t>& ids) {
  if (model_.whole_words()) {
    if (const auto id = model_.Find(word)) {
      ids.push_back(*id);
      return;
    }
  }
  model_.unit() == SymbolUnit::kBytes ? ByteSymbols(word) : CharacterSymbols(word);
  symbols_.size() <= kShortWord ? MergeShort() : MergeLong();
  ids.insert(ids.end(), symbols_.begin(), symbols_.end());
}

void BpeEncoder::ByteSymbols(std::string_view word) {
  symbols_.clear();
  int32_t waiting = BpeModel::kNone;
  for (size_t i = 0; i < word.size(); ++i) {
    const int32_t id = model_.byte_id(static_cast<uint8_t>(word[i]));
    if (id >= 0) {
      Flush(waiting);
      symbols_.push_back(id);
    } else {
      AddUnknown(waiting, word.substr(i, 1));
    }
  }
  Flush(waiting);
}

void BpeEncoder::CharacterSymbols(std::string_view word) {
  symbols_.clear();
  int32_t waiting = BpeModel::kNone;
  for (size_t at = 0; at < word.size();) {
    const size_t begin = at;
    NextCodePoint(word, at);
    const std::string_view character = word.substr(begin, at - begin);
    if (const auto id = model_.Find(character)) {
      Flush(waiting);
      symbols_.push_back(*id);
    } else if (!FallBack(character)) {
      AddUnknown(waiting, character);
    }
  }
  Flush(waiting);
}

// All bytes of the character, or none.
bool BpeEncoder::FallBack(std::string_view character) {
  const size_t before = symbols_.size();
  for (const char c : character) {
    const int32_t id = model_.fallback(static_cast<uint8_t>(c));
    if (id < 0) {
      symbols_.resize(before);
      return false;
    }
    symbols_.push_back(id);
  }
  return true;
}

// As in the reference an unknown token waits until a known one, or the end, follows: bytes that
// characters fell back to overtake it.
void BpeEncoder::AddUnknown(int32_t& waiting, std::string_view what) {
  if (model_.unknown() == BpeModel::kMissing) {
    throw TokenizerError(fmt::format(
        "the bytes {:02x} are not in the vocabulary, and neither is the tokenizer's unknown token",
        fmt::join(std::span(reinterpret_cast<const uint8_t*>(what.data()), what.size()), " ")));
  }
  if (!model_.fuse_unknown()) Flush(waiting);
  waiting = model_.unknown();
}

void BpeEncoder::Flush(int32_t& waiting) {
  if (waiting >= 0) symbols_.push_back(waiting);
  waiting = BpeModel::kNone;
}

void BpeEncoder::MergeShort() {
  const auto look_up = [this](size_t i) {
    const auto* merge = model_.FindMerge(symbols_[i], symbols_[i + 1]);
    ranks_[i] = merge != nullptr ? merge->rank : kNoRank;
    results_[i] = merge != nullptr ? merge->result : -1;
  };
  const auto erase = [](auto& values, size_t i) {
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(i));
  };
  if (symbols_.size() < 2) return;
  ranks_.resize(symbols_.size() - 1);
  results_.resize(symbols_.size() - 1);
  for (size_t i = 0; i < ranks_.size(); ++i) look_up(i);
  while (!ranks_.empty()) {
    const auto lowest = std::min_element(ranks_.begin(), ranks_.end());
    if (*lowest == kNoRank) return;
    const auto i = static_cast<size_t>(lowest - ranks_.begin());
    symbols_[i] = results_[i];
    erase(symbols_, i + 1);
    erase(ranks_, i);
    erase(results_, i);
    if (i > 0) look_up(i - 1);
    if (i < ranks_.size()) look_up(i);
  }
}

void BpeEncoder::MergeLong() {
  const auto size = static_cast<int32_t>(symbols_.size());
  std::vector<Node> nodes(symbols_.size());
  std::vector<Candidate> start;
  for (int32_t i = 0; i < size; ++i) {
    nodes[i] = {symbols_[i], i - 1, i + 1 < size ? i + 1 : -1};
    if (i + 1 == size) break;
    if (const auto* merge = model_.FindMerge(symbols_[i], symbols_[i + 1])) {
      start.push_back({merge->rank, i, merge->result});
    }
  }
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(start));
  const auto offer = [&](int32_t left) {
    if (left < 0 || nodes[left].next < 0) return;
    if (const auto* merge = model_.FindMerge(nodes[left].id, nodes[nodes[left].next].id)) {
      queue.push({merge->rank, left, merge->result});
    }
  };
  constexpr int32_t kGone = -1;
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    Node& left = nodes[top.position];
    if (left.id == kGone || left.next < 0) continue;
    // The pair may have changed since it was offered; tokens only grow, so the same result means
    // the same pair.
    const auto* merge = model_.FindMerge(left.id, nodes[left.next].id);
    if (merge == nullptr || merge->result != top.result) continue;
    Node& right = nodes[left.next];
    left.id = top.result;
    left.next = right.next;
    right.id = kGone;
    if (left.next >= 0) nodes[left.next].previous = top.position;
    offer(left.previous);
    offer(top.position);
  }
  symbols_.clear();
  for (int32_t i = size > 0 ? 0 : -1; i >= 0; i = nodes[i].next) symbols_.push_back(nodes[i].id);
}

}  // namespace muster::tokenizer
