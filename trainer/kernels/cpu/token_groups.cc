#include "trainer/kernels/token_groups.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

namespace muster::kernels {

TokenGroups GroupTokens(int64_t count, const int64_t* tokens, int64_t vocab) {
  for (int64_t i = 0; i < count; ++i) {
    if (tokens[i] >= 0 && tokens[i] < vocab) continue;
    throw std::out_of_range("token " + std::to_string(tokens[i]) + " at position " +
                            std::to_string(i) + " is outside the vocabulary of " +
                            std::to_string(vocab));
  }
  TokenGroups groups;
  groups.positions.resize(static_cast<size_t>(count));
  std::iota(groups.positions.begin(), groups.positions.end(), 0);
  std::stable_sort(groups.positions.begin(), groups.positions.end(),
                   [tokens](int32_t a, int32_t b) { return tokens[a] < tokens[b]; });
  for (size_t i = 0; i < groups.positions.size(); ++i) {
    const auto token = static_cast<int32_t>(tokens[groups.positions[i]]);
    if (!groups.tokens.empty() && groups.tokens.back() == token) continue;
    groups.tokens.push_back(token);
    groups.starts.push_back(static_cast<int32_t>(i));
  }
  groups.starts.push_back(static_cast<int32_t>(count));
  return groups;
}

void EmbeddingGroupsBackward(int64_t groups, int64_t columns, const int32_t* tokens,
                             const int32_t* starts, const int32_t* positions, const Bfloat16* dy,
                             float* dtable) {
  for (int64_t group = 0; group < groups; ++group) {
    float* const row = dtable + tokens[group] * columns;
    for (int64_t column = 0; column < columns; ++column) {
      float sum = 0;
      for (int32_t i = starts[group]; i < starts[group + 1]; ++i) {
        sum += float(dy[positions[i] * columns + column]);
      }
      row[column] += sum;
    }
  }
}

}  // namespace muster::kernels
