#pragma once

#include <cstdint>

#include "trainer/data/indexed_format.h"

namespace muster::data {

// `count` tokens of that type, at any alignment, as int64.
inline void DecodeTokens(TokenType type, const uint8_t* from, int64_t count, int64_t* out) {
  const auto widen = [&]<typename T>(T) {
    for (int64_t i = 0; i < count; ++i) {
      out[i] = static_cast<int64_t>(LoadUnaligned<T>(from + i * static_cast<int64_t>(sizeof(T))));
    }
  };
  switch (type) {
    case TokenType::kUint8:
      return widen(uint8_t{});
    case TokenType::kInt8:
      return widen(int8_t{});
    case TokenType::kInt16:
      return widen(int16_t{});
    case TokenType::kUint16:
      return widen(uint16_t{});
    case TokenType::kInt32:
      return widen(int32_t{});
    case TokenType::kInt64:
      return widen(int64_t{});
  }
}

}  // namespace muster::data
