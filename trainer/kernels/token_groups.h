#pragma once

#include <cstdint>
#include <vector>

#include "trainer/tensor/bfloat16.h"

namespace muster::kernels {

// The positions of a micro-batch sorted by token, so that the embedding's gradient can be summed
// row by row: in a fixed order and without two writers of one row.
struct TokenGroups {
  std::vector<int32_t> tokens;     // that occur, ascending
  std::vector<int32_t> starts;     // tokens.size() + 1: where each one's positions start
  std::vector<int32_t> positions;  // ascending within a token
};

// Throws std::out_of_range, which names it, for a token outside [0, vocab).
TokenGroups GroupTokens(int64_t count, const int64_t* tokens, int64_t vocab);

// dtable[token] += the sum of the group's rows of dy, in their order. As EmbeddingBackward, but for
// the order of the sums.
void EmbeddingGroupsBackward(int64_t groups, int64_t columns, const int32_t* tokens,
                             const int32_t* starts, const int32_t* positions, const Bfloat16* dy,
                             float* dtable);

}  // namespace muster::kernels
