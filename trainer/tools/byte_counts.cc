#include "trainer/tools/byte_counts.h"

#include <cstdint>

#include "trainer/kernels/cpu/vectorize.h"

namespace muster::tools {
namespace {

// As many as one byte can count, in whole registers.
constexpr size_t kBlock = 192;

MUSTER_VECTORIZE size_t CountEqual(const char* bytes, size_t size, char byte) {
  size_t count = 0;
  size_t at = 0;
  for (; at + kBlock <= size; at += kBlock) {
    uint8_t in_block = 0;
    for (size_t i = 0; i < kBlock; ++i) in_block += bytes[at + i] == byte ? 1 : 0;
    count += in_block;
  }
  for (; at < size; ++at) count += bytes[at] == byte ? 1 : 0;
  return count;
}

// Bytes that do not continue a character.
MUSTER_VECTORIZE size_t CountStarts(const char* bytes, size_t size) {
  size_t count = 0;
  size_t at = 0;
  for (; at + kBlock <= size; at += kBlock) {
    uint8_t in_block = 0;
    for (size_t i = 0; i < kBlock; ++i)
      in_block += static_cast<int8_t>(bytes[at + i]) >= -64 ? 1 : 0;
    count += in_block;
  }
  for (; at < size; ++at) count += static_cast<int8_t>(bytes[at]) >= -64 ? 1 : 0;
  return count;
}

}  // namespace

size_t CountByte(std::string_view text, char byte) {
  return CountEqual(text.data(), text.size(), byte);
}

size_t CountCharacters(std::string_view text) {
  return CountStarts(text.data(), text.size());
}

}  // namespace muster::tools
