#pragma once

#include <string>
#include <string_view>

namespace muster::tokenizer {

// A character that stands for a space where a SentencePiece model would drop one; no vocabulary is
// likely to have it.
inline constexpr std::string_view kExtraSpace = "\u262f";

// Megatron's re.sub(r'(?<= )(?= )|^ | $', ' X ', text).rstrip(), X being kExtraSpace: marks spaces
// at the ends, and between neighbouring spaces.
std::string MarkExtraSpaces(std::string_view text);

// Python's str.strip().
std::string PythonStrip(std::string_view text);

}  // namespace muster::tokenizer
