#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// GPT-2's way to write any byte as a printable character; vocabularies of byte-level BPE are
// written in it. Pure.

namespace muster::tokenizer {

// The character that stands for `byte`.
uint32_t ByteToCodePoint(uint8_t byte);

// The bytes that `token` stands for, or nothing when a character of it stands for none (special
// tokens, mostly).
std::optional<std::string> DecodeByteLevel(std::string_view token);

}  // namespace muster::tokenizer
