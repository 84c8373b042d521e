#include "trainer/data/token_loops.h"

#include "trainer/kernels/cpu/vectorize.h"

namespace muster::data {
namespace {

// Tokens that are widened at once, and bytes that are on their way from memory meanwhile: a sample
// lies anywhere, and the processor's own prefetching begins anew with each page.
constexpr int64_t kBlock = 64;
constexpr int64_t kAhead = 2048;

template <typename T>
MUSTER_VECTORIZE void Widen(const uint8_t* from, int64_t count, int64_t* out) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
  int64_t done = 0;
  for (; done + kBlock <= count; done += kBlock) {
    for (int64_t line = 0; line < kBlock * kBytes; line += 64) {
      __builtin_prefetch(from + done * kBytes + kAhead + line);
    }
    for (int64_t i = done; i < done + kBlock; ++i) {
      out[i] = static_cast<int64_t>(LoadUnaligned<T>(from + i * kBytes));
    }
  }
  for (; done < count; ++done) {
    out[done] = static_cast<int64_t>(LoadUnaligned<T>(from + done * kBytes));
  }
}

// A sign bit in the result: some token is negative or not below the limit.
MUSTER_VECTORIZE int64_t Signs(const int64_t* tokens, int64_t count, int64_t limit) {
  int64_t signs = 0;
  for (int64_t i = 0; i < count; ++i) signs |= tokens[i] | (limit - 1 - tokens[i]);
  return signs;
}

MUSTER_VECTORIZE void Mask(const int64_t* labels, int64_t skipped, int64_t count, float* mask) {
  for (int64_t i = 0; i < count; ++i) mask[i] = labels[i] == skipped ? 0.0F : 1.0F;
}

MUSTER_VECTORIZE bool Holds(const int64_t* tokens, int64_t count, int64_t token) {
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) found |= tokens[i] == token ? 1 : 0;
  return found != 0;
}

}  // namespace

void DecodeTokens(TokenType type, const uint8_t* from, int64_t count, int64_t* out) {
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
}

bool AllBelow(std::span<const int64_t> tokens, int64_t limit) {
  return Signs(tokens.data(), static_cast<int64_t>(tokens.size()), limit) >= 0;
}

void MaskLabels(std::span<const int64_t> tokens, int64_t skipped, std::span<float> mask) {
  Mask(tokens.data() + 1, skipped, static_cast<int64_t>(mask.size()), mask.data());
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
