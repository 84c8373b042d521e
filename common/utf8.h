#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// UTF-8 as Unicode 15 defines it (table 3-7): no overlong forms, no surrogates, nothing above
// U+10FFFF. Pure.

namespace muster {

// A character at the start of a text; `length` is 0 where there is none that is well-formed.
struct Utf8Character {
  uint32_t code_point = 0;
  size_t length = 0;  // bytes
};

// `text` is not empty.
Utf8Character DecodeUtf8(std::string_view text);

bool IsValidUtf8(std::string_view text);

// Each byte that is not part of valid UTF-8 becomes U+FFFD: what ranks, tools and file systems say
// may be any bytes, protobuf's strings and JSON may not.
std::string ToValidUtf8(std::string_view text);

}  // namespace muster
