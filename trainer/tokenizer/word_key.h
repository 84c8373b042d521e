#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace muster::tokenizer {

// A word of at most kMaxBytes in two registers: equal keys are equal words. Most words of most
// texts fit.
struct WordKey {
  static constexpr size_t kMaxBytes = 16;

  uint64_t low = 0;
  uint64_t high = 0;
  uint32_t size = 0;

  bool operator==(const WordKey&) const = default;

  // `word` has 1 to kMaxBytes bytes.
  static WordKey Of(std::string_view word) {
    const auto load = [&word](size_t at, size_t count) {
      uint64_t value = 0;
      std::memcpy(&value, word.data() + at, count);
      return value;
    };
    const size_t n = word.size();
    WordKey key;
    key.size = static_cast<uint32_t>(n);
    // Two loads that may overlap: together with the size they determine the bytes.
    if (n >= 8) {
      key.low = load(0, 8);
      key.high = load(n - 8, 8);
    } else if (n >= 4) {
      key.low = load(0, 4);
      key.high = load(n - 4, 4);
    } else {
      key.low = load(0, 1) | load(n / 2, 1) << 8 | load(n - 1, 1) << 16;
    }
    return key;
  }

  uint64_t Hash() const {
    uint64_t h = (low ^ size) * 0x9e3779b97f4a7c15U;
    h = (h ^ (h >> 32) ^ high) * 0xd6e8feb86659fd93U;
    return h ^ (h >> 29);
  }
};

}  // namespace muster::tokenizer
