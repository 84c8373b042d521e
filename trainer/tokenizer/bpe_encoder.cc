#include "trainer/tokenizer/bpe_encoder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>

#include "trainer/tokenizer/bpe_merger.h"
#include "trainer/tokenizer/utf8.h"

namespace muster::tokenizer {
namespace {

// Words in the cache of each encoder, while there are few.
constexpr size_t kCachedWords = size_t{1} << 16;
// Memory for a byte of a long word: its symbol, what merges it, ids on their way.
constexpr size_t kBytesPerWordByte = 6;
// Scratch memory of more symbols is given back after use.
constexpr size_t kKeptSymbols = size_t{1} << 16;

size_t CachedWords(size_t threads) {
  return kCachedWords * Tokenizer::kFullEncoders /
         std::bit_ceil(std::max(threads, Tokenizer::kFullEncoders));
}

}  // namespace

BpeEncoder::BpeEncoder(const BpeModel& model, const EncoderOptions& options)
    : model_(model), memory_(options.memory), cache_(CachedWords(options.threads)) {}

void BpeEncoder::Encode(std::span<const std::string_view> words, const char* text_end,
                        const std::function<void()>* take, std::vector<int32_t>& ids) {
  while (words.size() > kBatch) {
    EncodeBatch(words.first(kBatch), text_end, take, ids);
    words = words.subspan(kBatch);
  }
  EncodeBatch(words, text_end, take, ids);
}

// First all keys, so that memory brings what they look up meanwhile.
void BpeEncoder::EncodeBatch(std::span<const std::string_view> words, const char* text_end,
                             const std::function<void()>* take, std::vector<int32_t>& ids) {
  std::array<WordKey, kBatch> keys;
  std::array<uint64_t, kBatch> hashes;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word.size() > WordKey::kMaxBytes) continue;
    const bool readable = static_cast<size_t>(text_end - word.data()) >= WordKey::kMaxBytes;
    keys[i] = readable ? WordKey::OfReadable(word.data(), word.size()) : WordKey::Of(word);
    hashes[i] = keys[i].Hash();
    cache_.Prefetch(hashes[i]);
  }
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].size() > WordKey::kMaxBytes) {
      EncodeLong(words[i], take, ids);
      continue;
    }
    if (cache_.Append(keys[i], hashes[i], ids)) continue;
    const size_t before = ids.size();
    if (const auto whole = model_.whole_words() ? model_.Find(keys[i], hashes[i]) : std::nullopt) {
      ids.push_back(*whole);
    } else {
      Symbols(words[i]);
      ids.insert(ids.end(), symbols_.begin(), symbols_.end());
    }
    cache_.Put(keys[i], hashes[i], std::span(ids).subspan(before));
  }
}

void BpeEncoder::EncodeLong(std::string_view word, const std::function<void()>* take,
                            std::vector<int32_t>& ids) {
  if (const auto whole = model_.whole_words() ? model_.Find(word) : std::nullopt) {
    ids.push_back(*whole);
    return;
  }
  WorkMemory::Hold hold;
  if (memory_ != nullptr) hold = memory_->Take(word.size(), kBytesPerWordByte, "a single word");
  Symbols(word);
  for (size_t at = 0; at < symbols_.size(); at += Encoder::kPartIds) {
    const size_t end = std::min(at + Encoder::kPartIds, symbols_.size());
    ids.insert(ids.end(), symbols_.data() + at, symbols_.data() + end);
    if (take != nullptr && ids.size() >= Encoder::kPartIds) (*take)();
  }
  if (symbols_.capacity() > kKeptSymbols) symbols_ = {};
}

// The symbols of a word, merged.
void BpeEncoder::Symbols(std::string_view word) {
  symbols_.clear();
  symbols_.reserve(word.size());  // not more, as if it grew
  model_.unit() == SymbolUnit::kBytes ? ByteSymbols(word) : CharacterSymbols(word);
  MergeSymbols(model_, symbols_);
}

void BpeEncoder::ByteSymbols(std::string_view word) {
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

}  // namespace muster::tokenizer
