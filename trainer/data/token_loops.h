#pragma once

#include <cstdint>
#include <span>

#include "trainer/data/indexed_format.h"

// The loops over all tokens that are read, for several instruction sets.

namespace muster::data {

// `count` tokens of that type, at any alignment, as int64.
void DecodeTokens(TokenType type, const uint8_t* from, int64_t count, int64_t* out);

// Whether all tokens are in 0 .. limit-1.
bool AllBelow(std::span<const int64_t> tokens, int64_t limit);

// mask[i] = 0 where tokens[i + 1] is `skipped`, else 1. tokens has one element more than mask.
void MaskLabels(std::span<const int64_t> tokens, int64_t skipped, std::span<float> mask);

// The first place at or after `from` where `token` stands, or tokens.size().
int64_t FindToken(std::span<const int64_t> tokens, int64_t from, int64_t token);

}  // namespace muster::data
