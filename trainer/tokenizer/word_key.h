#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace muster::tokenizer {

// A word of at most kMaxBytes in two registers, filled up with zeros: equal keys are equal words.
// Most words of most texts fit.
struct WordKey {
  static constexpr size_t kMaxBytes = 16;

  uint64_t low = 0;
  uint64_t high = 0;
  uint32_t size = 0;

  bool operator==(const WordKey&) const = default;

  // `word` has 1 to kMaxBytes bytes.
  static WordKey Of(std::string_view word) {
    std::array<char, kMaxBytes> bytes{};
    std::memcpy(bytes.data(), word.data(), word.size());
    return OfReadable(bytes.data(), word.size());
  }

  // The same where kMaxBytes bytes can be read: no branch depends on the size.
  static WordKey OfReadable(const char* word, size_t size) {
    static_assert(std::endian::native == std::endian::little);
    const size_t in_low = std::min<size_t>(size, 8);
    WordKey key;
    std::memcpy(&key.low, word, 8);
    std::memcpy(&key.high, word + 8, 8);
    key.low &= kMasks[in_low];
    key.high &= kMasks[size - in_low];
    key.size = static_cast<uint32_t>(size);
    return key;
  }

  uint64_t Hash() const {
    uint64_t h = (low ^ size) * 0x9e3779b97f4a7c15U;
    h = (h ^ (h >> 32) ^ high) * 0xd6e8feb86659fd93U;
    return h ^ (h >> 29);
  }

 private:
  // The first so many bytes of eight.
  static constexpr std::array<uint64_t, 9> kMasks = {
      0,           0xff,         0xffff,         0xffffff,
      0xffffffff,  0xffffffffff, 0xffffffffffff, 0xffffffffffffff,
      ~uint64_t{0}};
};

}  // namespace muster::tokenizer
