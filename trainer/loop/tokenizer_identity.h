#pragma once

#include <string>

#include "trainer/config/parse.h"

namespace muster::loop {

// What Megatron's tokenizer would call itself for these flags (unique_identifiers, as JSON): part
// of the names of its index caches. Pure. Without --tokenizer-type: the NullTokenizer's, with the
// size of the vocabulary.
std::string TokenizerIdentity(const config::CommandLine& line);

}  // namespace muster::loop
