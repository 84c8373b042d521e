#pragma once

#include <cstddef>
#include <string_view>

namespace muster::tools {

// Loops over every byte of the input, compiled for the widest registers there are.

// How often `byte` is in the text.
size_t CountByte(std::string_view text, char byte);

// Characters of valid UTF-8.
size_t CountCharacters(std::string_view text);

}  // namespace muster::tools
