#include "trainer/tokenizer/byte_level.h"

#include <array>

#include "trainer/tokenizer/utf8.h"

namespace muster::tokenizer {
namespace {

// Printable Latin-1 bytes stand for themselves; the others take code points from 256 on, in order.
constexpr uint32_t kFirstShifted = 256;

constexpr bool StandsForItself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  uint32_t next = kFirstShifted;
  for (int byte = 0; byte < 256; ++byte) {
    table[byte] = StandsForItself(byte) ? static_cast<uint32_t>(byte) : next++;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = MakeTable();
constexpr uint32_t kLimit = kTable[0xad] + 1;  // the last shifted byte

constexpr std::array<int16_t, kLimit> MakeInverse() {
  std::array<int16_t, kLimit> inverse{};
  for (auto& byte : inverse) byte = -1;
  for (int byte = 0; byte < 256; ++byte) inverse[kTable[byte]] = static_cast<int16_t>(byte);
  return inverse;
}

constexpr std::array<int16_t, kLimit> kInverse = MakeInverse();

}  // namespace

uint32_t ByteToCodePoint(uint8_t byte) {
  return kTable[byte];
}

std::optional<std::string> DecodeByteLevel(std::string_view token) {
  std::string bytes;
  for (size_t at = 0; at < token.size();) {
    const uint32_t code_point = NextCodePoint(token, at);
    if (code_point >= kLimit || kInverse[code_point] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kInverse[code_point]));
  }
  return bytes;
}

}  // namespace muster::tokenizer
