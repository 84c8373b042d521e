#include "trainer/tokenizer/bpe_model.h"

#include <algorithm>
#include <bit>

namespace muster::tokenizer {
namespace {

uint64_t HashPair(uint64_t pair) {
  const uint64_t h = pair * 0x9e3779b97f4a7c15U;
  return h ^ (h >> 31);
}

// Two thirds full at most: small, so that more of it is in the processor's caches.
size_t TableSize(size_t entries) {
  return std::bit_ceil(std::max<size_t>(entries, 4) * 3 / 2);
}

}  // namespace

void BpeModel::AddToken(std::string bytes, int32_t id) {
  if (bytes.size() == 1) byte_ids_[static_cast<uint8_t>(bytes[0])] = id;
  added_.emplace_back(std::move(bytes), id);
}

void BpeModel::AddMerge(int32_t left, int32_t right, uint32_t rank, int32_t result) {
  added_merges_.emplace_back(Pair(left, right), Merge{rank, result});
}

void BpeModel::Finish() {
  short_.assign(TableSize(added_.size()), {});
  for (auto& [bytes, id] : added_) {
    if (bytes.empty()) continue;
    longest_ = std::max(longest_, bytes.size());
    if (bytes.size() > WordKey::kMaxBytes) {
      long_[std::move(bytes)] = id;
      continue;
    }
    const WordKey key = WordKey::Of(bytes);
    size_t slot = key.Hash() & (short_.size() - 1);
    while (short_[slot].key.size != 0 && short_[slot].key != key) slot = (slot + 1) % short_.size();
    short_[slot] = {key, id};
  }
  small_merges_.assign(static_cast<size_t>(kSmallIds) * kSmallIds, {});
  merges_.assign(TableSize(added_merges_.size()), {});
  for (const auto& [pair, merge] : added_merges_) {
    const uint64_t left = pair >> 32;
    const uint64_t right = pair & std::numeric_limits<uint32_t>::max();
    if ((left | right) < kSmallIds) {
      small_merges_[left * kSmallIds + right] = merge;
      continue;
    }
    size_t slot = HashPair(pair) & (merges_.size() - 1);
    while (merges_[slot].pair != kNoPair && merges_[slot].pair != pair) {
      slot = (slot + 1) % merges_.size();
    }
    merges_[slot] = {pair, merge};
  }
  added_ = {};
  added_merges_ = {};
}

std::optional<int32_t> BpeModel::Find(std::string_view token) const {
  if (token.empty() || token.size() > longest_) return std::nullopt;
  if (token.size() > WordKey::kMaxBytes) {
    const auto found = long_.find(token);
    return found == long_.end() ? std::nullopt : std::optional<int32_t>(found->second);
  }
  const WordKey key = WordKey::Of(token);
  return Find(key, key.Hash());
}

std::optional<int32_t> BpeModel::Find(const WordKey& token, uint64_t hash) const {
  for (size_t slot = hash & (short_.size() - 1);; slot = (slot + 1) & (short_.size() - 1)) {
    if (short_[slot].key == token) return short_[slot].id;
    if (short_[slot].key.size == 0) return std::nullopt;
  }
}

BpeModel::Merge BpeModel::FindLargeMerge(int32_t left, int32_t right) const {
  const uint64_t pair = Pair(left, right);
  for (size_t slot = HashPair(pair) & (merges_.size() - 1);;
       slot = (slot + 1) & (merges_.size() - 1)) {
    if (merges_[slot].pair == pair) return merges_[slot].merge;
    if (merges_[slot].pair == kNoPair) return {};
  }
}

}  // namespace muster::tokenizer
