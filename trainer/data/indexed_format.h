#pragma once

#include <cstdint>
#include <cstring>

// Megatron's .idx, little endian, shared by reader and writer. docs/formats.md draws it byte by
// byte.

namespace muster::data {

inline constexpr char kIndexMagic[9] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0};
inline constexpr uint64_t kIndexVersion = 1;

inline constexpr int64_t kVersionOffset = 9;
inline constexpr int64_t kTokenTypeOffset = 17;
inline constexpr int64_t kSequenceCountOffset = 18;
inline constexpr int64_t kDocumentCountOffset = 26;
inline constexpr int64_t kIndexHeaderBytes =
    34;  // then int32 lengths, int64 starts, int64 documents

// The type of the tokens in .bin, by its code in .idx.
enum class TokenType : uint8_t {
  kUint8 = 1,
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kUint16 = 8,  // 6 and 7 are floating point: not tokens
};

// Bytes of one token, or 0 when the code names no token type.
inline int64_t TokenBytes(TokenType type) {
  switch (type) {
    case TokenType::kUint8:
    case TokenType::kInt8:
      return 1;
    case TokenType::kInt16:
    case TokenType::kUint16:
      return 2;
    case TokenType::kInt32:
      return 4;
    case TokenType::kInt64:
      return 8;
  }
  return 0;
}

// Megatron's choice when it writes.
inline TokenType TokenTypeFor(int64_t vocab_size) {
  return vocab_size < 65500 ? TokenType::kUint16 : TokenType::kInt32;
}

// The fields of .idx are not aligned.
template <typename T>
T LoadUnaligned(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

}  // namespace muster::data
