#include "trainer/tokenizer/utf8.h"

#include <cstring>

#include "trainer/tokenizer/tokenizer.h"

namespace muster::tokenizer {

void AppendUtf8(uint32_t code_point, std::string& out) {
  if (code_point < 0x80) {
    out.push_back(static_cast<char>(code_point));
    return;
  }
  if (code_point < 0x800) {
    out.push_back(static_cast<char>(0xc0 | code_point >> 6));
  } else {
    if (code_point < 0x10000) {
      out.push_back(static_cast<char>(0xe0 | code_point >> 12));
    } else {
      out.push_back(static_cast<char>(0xf0 | code_point >> 18));
      out.push_back(static_cast<char>(0x80 | (code_point >> 12 & 0x3f)));
    }
    out.push_back(static_cast<char>(0x80 | (code_point >> 6 & 0x3f)));
  }
  out.push_back(static_cast<char>(0x80 | (code_point & 0x3f)));
}

size_t ValidUtf8Prefix(std::string_view text) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  const size_t size = text.size();
  size_t i = 0;
  while (i < size) {
    if (i + 8 <= size) {  // eight ASCII bytes at once
      uint64_t word;
      std::memcpy(&word, bytes + i, sizeof(word));
      if ((word & 0x8080808080808080U) == 0) {
        i += 8;
        continue;
      }
    }
    const uint8_t first = bytes[i];
    if (first < 0x80) {
      ++i;
      continue;
    }
    size_t length = 0;
    uint8_t low = 0x80;  // bounds of the second byte
    uint8_t high = 0xbf;
    if (first >= 0xc2 && first <= 0xdf) {
      length = 2;
    } else if (first >= 0xe0 && first <= 0xef) {
      length = 3;
      if (first == 0xe0) low = 0xa0;
      if (first == 0xed) high = 0x9f;
    } else if (first >= 0xf0 && first <= 0xf4) {
      length = 4;
      if (first == 0xf0) low = 0x90;
      if (first == 0xf4) high = 0x8f;
    }
    if (length == 0 || i + length > size) return i;
    if (bytes[i + 1] < low || bytes[i + 1] > high) return i;
    for (size_t k = 2; k < length; ++k) {
      if ((bytes[i + k] & 0xc0) != 0x80) return i;
    }
    i += length;
  }
  return size;
}

void CheckUtf8(std::string_view text) {
  const size_t valid = ValidUtf8Prefix(text);
  if (valid < text.size()) {
    throw TokenizerError("byte " + std::to_string(valid) + " of the text is not valid UTF-8");
  }
}

}  // namespace muster::tokenizer
