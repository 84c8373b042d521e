#include "trainer/data/token_loops.h"

#include <algorithm>
#include <type_traits>

#include "trainer/kernels/cpu/vectorize.h"

namespace muster::data {
namespace {

// Tokens that are widened at once, and bytes that are on their way from memory meanwhile: a sample
// lies anywhere, and the processor's own prefetching begins anew with each page.
constexpr int64_t kBlock = 128;
constexpr int64_t kAhead = 2048;
constexpr int64_t kCacheLine = 64;

// The largest is found among tokens as narrow as they are in the file.
template <typename T>
MUSTER_VECTORIZE uint64_t Widen(const uint8_t* from, int64_t count, int64_t* out) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
  using Unsigned = std::make_unsigned_t<T>;
  Unsigned largest = 0;
  int64_t done = 0;
  for (; done + kBlock <= count; done += kBlock) {
    if ((count - done) * kBytes > kAhead) {
      for (int64_t line = 0; line < kBlock * kBytes; line += kCacheLine) {
        __builtin_prefetch(from + done * kBytes + kAhead + line);
      }
    }
    for (int64_t i = done; i < done + kBlock; ++i) {
      const T token = LoadUnaligned<T>(from + i * kBytes);
      largest = std::max(largest, static_cast<Unsigned>(token));
      out[i] = static_cast<int64_t>(token);
    }
  }
  for (; done < count; ++done) {
    const T token = LoadUnaligned<T>(from + done * kBytes);
    largest = std::max(largest, static_cast<Unsigned>(token));
    out[done] = static_cast<int64_t>(token);
  }
  return static_cast<uint64_t>(static_cast<int64_t>(static_cast<T>(largest)));
}

MUSTER_VECTORIZE bool Holds(const int64_t* tokens, int64_t count, int64_t token) {
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) found |= tokens[i] == token ? 1 : 0;
  return found != 0;
}

}  // namespace

uint64_t DecodeTokens(TokenType type, const uint8_t* from, int64_t count, int64_t* out) {
  switch (type) {
    case TokenType::kUint8:
      return Widen<uint8_t>(from, count, out);
    case TokenType::kInt8:
      return Widen<int8_t>(from, count, out);
    case TokenType::kInt16:
      return Widen<int16_t>(from, count, out);
    case TokenType::kUint16:
      return Widen<uint16_t>(from, count, out);
    case TokenType::kInt32:
      return Widen<int32_t>(from, count, out);
    case TokenType::kInt64:
      return Widen<int64_t>(from, count, out);
  }
  return 0;
}

void TouchTokens(const uint8_t* from, int64_t bytes) {
  const int64_t end = std::min(bytes, kAhead);
  for (int64_t line = 0; line < end; line += kCacheLine) __builtin_prefetch(from + line);
}

int64_t FindToken(std::span<const int64_t> tokens, int64_t from, int64_t token) {
  constexpr int64_t kSearched = 256;  // tokens at once
  const auto size = static_cast<int64_t>(tokens.size());
  while (from + kSearched <= size && !Holds(tokens.data() + from, kSearched, token))
    from += kSearched;
  while (from < size && tokens[static_cast<size_t>(from)] != token) ++from;
  return from;
}

}  // namespace muster::data
