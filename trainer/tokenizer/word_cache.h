#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "trainer/tokenizer/word_key.h"

namespace muster::tokenizer {

// The ids of words that came lately. Two words share a line of the processor's cache, the one that
// came first makes room. One thread.
class WordCache {
 public:
  static constexpr size_t kMaxIds = 3;  // of a word that is kept

  explicit WordCache(size_t words) : sets_(std::bit_ceil(std::max<size_t>(words, 2)) / 2) {}

  // Brings what Append and Put will look at near. `hash` is that of the key, here and below.
  void Prefetch(uint64_t hash) const { __builtin_prefetch(&SetOf(hash)); }

  // Appends the ids of a word, if they are here.
  bool Append(const WordKey& key, uint64_t hash, std::vector<int32_t>& ids) {
    Set& set = sets_[hash & (sets_.size() - 1)];
    if (!set.first.Is(key)) {
      if (!set.second.Is(key)) return false;
      std::swap(set.first, set.second);
    }
    const Entry& entry = set.first;
    ids.push_back(entry.ids[0]);
    for (uint8_t i = 1; i < entry.count; ++i) ids.push_back(entry.ids[i]);
    return true;
  }

  // Keeps a word that Append did not find, unless it has no ids or too many.
  void Put(const WordKey& key, uint64_t hash, std::span<const int32_t> ids) {
    if (ids.empty() || ids.size() > kMaxIds) return;
    Set& set = sets_[hash & (sets_.size() - 1)];
    set.second = set.first;
    set.first = {
        key.low, key.high, {}, static_cast<uint8_t>(key.size), static_cast<uint8_t>(ids.size())};
    std::copy(ids.begin(), ids.end(), set.first.ids);
  }

 private:
  struct Entry {
    uint64_t low = 0;
    uint64_t high = 0;
    int32_t ids[kMaxIds] = {};
    uint8_t size = 0;  // 0: empty
    uint8_t count = 0;

    bool Is(const WordKey& key) const {
      return ((low ^ key.low) | (high ^ key.high) | (size ^ key.size)) == 0;
    }
  };
  struct alignas(64) Set {
    Entry first;  // came last
    Entry second;
  };

  const Set& SetOf(uint64_t hash) const { return sets_[hash & (sets_.size() - 1)]; }

  std::vector<Set> sets_;
};

}  // namespace muster::tokenizer
