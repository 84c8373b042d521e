#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// What two workers say to each other inside TLS. The child sends numbers of pieces; the parent
// answers in that order, each piece behind a header, and while it waits for a piece itself, a
// header of no piece, so that the child knows that it lives.

namespace muster::stage {

inline constexpr size_t kNumberBytes = 4;
inline constexpr size_t kPieceHeaderBytes = 8;  // piece, size
inline constexpr uint32_t kAlive = 0xffffffff;  // in place of a piece

inline std::string PutNumber(uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
  return out;
}

inline uint32_t GetNumber(std::string_view in) {
  uint32_t value = 0;
  for (size_t i = 0; i < kNumberBytes; ++i) value = value << 8 | static_cast<unsigned char>(in[i]);
  return value;
}

}  // namespace muster::stage
