#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trainer/tokenizer/word_key.h"

namespace muster::tokenizer {

// A byte-pair vocabulary over bytes. Built once, then immutable: any thread.
class BpeModel {
 public:
  struct Merge {
    uint32_t rank;
    int32_t result;
  };

  // Token strings in bytes. Ids need not be dense.
  void AddToken(std::string bytes, int32_t id);
  // The pair (left, right) becomes `result`; a lower rank goes first. A repeated pair takes the
  // last rank.
  void AddMerge(int32_t left, int32_t right, uint32_t rank, int32_t result);
  // A word that is a token becomes it, whatever the merges say (`ignore_merges`).
  void set_whole_words(bool on) { whole_words_ = on; }
  // What stands for a byte that is no token; without one such bytes vanish. `fuse`: runs of them
  // become one.
  void set_unknown(int32_t id, bool fuse) {
    unknown_ = id;
    fuse_unknown_ = fuse;
  }
  // Builds the tables; after the last Add.
  void Finish();

  bool whole_words() const { return whole_words_; }
  std::optional<int32_t> Find(std::string_view token) const;
  int32_t byte_id(uint8_t byte) const { return byte_ids_[byte]; }  // -1: none
  int32_t unknown() const { return unknown_; }                     // -1: none
  bool fuse_unknown() const { return fuse_unknown_; }
  const Merge* FindMerge(int32_t left, int32_t right) const;

 private:
  struct ShortEntry {
    WordKey key;  // size 0: empty slot
    int32_t id = -1;
  };
  struct MergeEntry {
    uint64_t pair = kNoPair;
    Merge merge{};
  };
  static constexpr uint64_t kNoPair = ~uint64_t{0};
  static uint64_t Pair(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }

  bool whole_words_ = false;
  int32_t unknown_ = -1;
  bool fuse_unknown_ = false;
  std::vector<std::pair<std::string, int32_t>> added_;    // until Finish
  std::vector<std::pair<uint64_t, Merge>> added_merges_;  // until Finish
  std::vector<ShortEntry> short_;                         // open addressing, a power of two
  std::unordered_map<std::string, int32_t> long_;         // more than WordKey::kMaxBytes
  std::vector<MergeEntry> merges_;                        // open addressing, a power of two
  std::vector<int32_t> byte_ids_ = std::vector<int32_t>(256, -1);
};

// Encodes words with a model: one thread's scratch and cache.
class BpeEncoder {
 public:
  explicit BpeEncoder(const BpeModel& model);

  // Appends the ids of one word (a piece of text between splits; not empty).
  void Encode(std::string_view word, std::vector<int32_t>& ids);

 private:
  struct CacheEntry {
    static constexpr size_t kMaxIds = 4;
    WordKey key;
    uint32_t count = 0;
    int32_t ids[kMaxIds];
  };
  // A word as a linked list of symbols, for words that are too long for repeated scans.
  struct Node {
    int32_t id;
    int32_t previous;
    int32_t next;
  };

  void EncodeUncached(std::string_view word, std::vector<int32_t>& ids);
  void Symbols(std::string_view word);
  void MergeShort();
  void MergeLong();

  const BpeModel& model_;
  std::vector<CacheEntry> cache_;
  std::vector<int32_t> symbols_;
  std::vector<uint32_t> ranks_;
  std::vector<int32_t> results_;
};

}  // namespace muster::tokenizer
