#pragma once

#include <string>

namespace muster::tokenizer {

// The bytes of a file. Throws TokenizerError with the path and the reason.
std::string ReadWholeFile(const std::string& path);

}  // namespace muster::tokenizer
