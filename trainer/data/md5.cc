#include "trainer/data/md5.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace muster::data {
namespace {

constexpr size_t kBlock = 64;

using State = std::array<uint32_t, 4>;

void AddBlock(const char* block, State& state) {
  static const auto kSines = [] {
    std::array<uint32_t, kBlock> table{};
    for (size_t i = 0; i < kBlock; ++i) {
      table[i] = static_cast<uint32_t>(
          std::floor(std::ldexp(std::abs(std::sin(static_cast<double>(i + 1))), 32)));
    }
    return table;
  }();
  constexpr int kTurns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

  std::array<uint32_t, 16> words;
  std::memcpy(words.data(), block, kBlock);
  auto [a, b, c, d] = state;
  for (size_t i = 0; i < kBlock; ++i) {
    uint32_t f = 0;
    size_t word = 0;
    switch (i / 16) {
      case 0:
        f = (b & c) | (~b & d);
        word = i;
        break;
      case 1:
        f = (d & b) | (~d & c);
        word = 5 * i + 1;
        break;
      case 2:
        f = b ^ c ^ d;
        word = 3 * i + 5;
        break;
      default:
        f = c ^ (b | ~d);
        word = 7 * i;
        break;
    }
    const uint32_t sum = a + f + kSines[i] + words[word % 16];
    a = d;
    d = c;
    c = b;
    b += std::rotl(sum, kTurns[i / 16][i % 4]);
  }
  state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d};
}

}  // namespace

std::string Md5(std::string_view text) {
  std::string padded(text);
  padded += '\x80';
  while (padded.size() % kBlock != kBlock - sizeof(uint64_t)) padded += '\0';
  const uint64_t bits = uint64_t{text.size()} * 8;
  padded.append(reinterpret_cast<const char*>(&bits), sizeof(bits));

  State state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  for (size_t at = 0; at < padded.size(); at += kBlock) AddBlock(padded.data() + at, state);
  std::string hex;
  for (const uint32_t word : state) hex += fmt::format("{:08x}", __builtin_bswap32(word));
  return hex;
}

}  // namespace muster::data
