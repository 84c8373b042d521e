#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trainer/tokenizer/word_key.h"

namespace muster::tokenizer {

// What a word is before the first merge.
enum class SymbolUnit { kBytes, kCharacters };

// A byte-pair vocabulary. Built once, then immutable: any thread.
class BpeModel {
 public:
  static constexpr int32_t kNone = -1;
  static constexpr int32_t kMissing = -2;

  // No rank, of pairs that never merge; it comes after all others.
  static constexpr uint32_t kNoRank = std::numeric_limits<uint32_t>::max();
  struct Merge {
    uint32_t rank = kNoRank;
    int32_t result = kNone;
  };

  void set_unit(SymbolUnit unit) { unit_ = unit; }
  // Token strings in bytes. Ids need not be dense.
  void AddToken(std::string bytes, int32_t id);
  // The pair (left, right) becomes `result`; a lower rank goes first. A repeated pair takes the
  // last rank.
  void AddMerge(int32_t left, int32_t right, uint32_t rank, int32_t result);
  // A word that is a token becomes it, whatever the merges say (`ignore_merges`).
  void set_whole_words(bool on) { whole_words_ = on; }
  // What stands for a byte or character that is no token: an id, kNone (it vanishes) or kMissing
  // (the text can't be encoded). `fuse`: runs of them become one.
  void set_unknown(int32_t id, bool fuse) {
    unknown_ = id;
    fuse_unknown_ = fuse;
  }
  // The token of a byte of characters that are no token (`byte_fallback`).
  void set_fallback(uint8_t byte, int32_t id) { fallback_[byte] = id; }
  // Builds the tables; after the last Add.
  void Finish();

  SymbolUnit unit() const { return unit_; }
  bool whole_words() const { return whole_words_; }
  std::optional<int32_t> Find(std::string_view token) const;
  std::optional<int32_t> Find(const WordKey& token, uint64_t hash) const;  // of its key
  int32_t byte_id(uint8_t byte) const { return byte_ids_[byte]; }          // or kNone
  int32_t fallback(uint8_t byte) const { return fallback_[byte]; }         // or kNone
  int32_t unknown() const { return unknown_; }
  bool fuse_unknown() const { return fuse_unknown_; }
  Merge FindMerge(int32_t left, int32_t right) const {
    // Two bytes, most often: most vocabularies begin with them.
    if (static_cast<uint32_t>(left | right) < kSmallIds) {
      return small_merges_[static_cast<size_t>(left * kSmallIds + right)];
    }
    return FindLargeMerge(left, right);
  }

 private:
  struct ShortEntry {
    WordKey key;  // size 0: empty slot
    int32_t id = -1;
  };
  struct MergeEntry {
    uint64_t pair = kNoPair;
    Merge merge;
  };
  // Lets words be looked for in a map of strings.
  struct TextHash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  static constexpr int32_t kSmallIds = 256;  // a power of two
  static constexpr uint64_t kNoPair = ~uint64_t{0};
  static uint64_t Pair(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }

  Merge FindLargeMerge(int32_t left, int32_t right) const;

  SymbolUnit unit_ = SymbolUnit::kBytes;
  bool whole_words_ = false;
  int32_t unknown_ = kNone;
  bool fuse_unknown_ = false;
  std::vector<std::pair<std::string, int32_t>> added_;    // until Finish
  std::vector<std::pair<uint64_t, Merge>> added_merges_;  // until Finish
  std::vector<ShortEntry> short_;                         // open addressing, a power of two
  size_t longest_ = 0;                                    // bytes of a token
  std::vector<Merge> small_merges_;                       // of ids below kSmallIds: a square
  std::vector<MergeEntry> merges_;                        // open addressing, a power of two
  // Tokens of more than WordKey::kMaxBytes.
  std::unordered_map<std::string, int32_t, TextHash, std::equal_to<>> long_;
  std::vector<int32_t> byte_ids_ = std::vector<int32_t>(256, kNone);
  std::vector<int32_t> fallback_ = std::vector<int32_t>(256, kNone);
};

}  // namespace muster::tokenizer
