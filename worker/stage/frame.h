#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// Messages between the daemon and its staging process: four bytes of length, then the message.

namespace muster::stage {

inline constexpr size_t kFrameHeaderBytes = 4;
inline constexpr size_t kMaxFrameBytes = size_t{2} << 20;  // no message of the protocol is larger

inline std::string Frame(std::string_view message) {
  std::string frame;
  for (int shift = 24; shift >= 0; shift -= 8)
    frame += static_cast<char>(message.size() >> static_cast<unsigned>(shift) & 0xff);
  frame.append(message.data(), message.size());
  return frame;
}

// The size of the message behind the header that `bytes` begins with.
inline size_t FrameSize(std::string_view bytes) {
  size_t size = 0;
  for (size_t i = 0; i < kFrameHeaderBytes; ++i)
    size = size << 8 | static_cast<unsigned char>(bytes[i]);
  return size;
}

}  // namespace muster::stage
