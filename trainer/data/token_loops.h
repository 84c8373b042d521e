#pragma once

#include <cstdint>
#include <span>

#include "trainer/data/indexed_format.h"

// The loops over all tokens that are read, for several instruction sets.

namespace muster::data {

// `count` tokens of that type, at any alignment, as int64. Returns the largest, where a negative
// one counts as larger than all others: it is the token as an unsigned number. 0 for no tokens.
uint64_t DecodeTokens(TokenType type, const uint8_t* from, int64_t count, int64_t* out);

// Asks the processor for the first of these bytes that DecodeTokens would wait for.
void TouchTokens(const uint8_t* from, int64_t bytes);

// The first place at or after `from` where `token` stands, or tokens.size().
int64_t FindToken(std::span<const int64_t> tokens, int64_t from, int64_t token);

}  // namespace muster::data
