#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace muster::data {

enum class Split { kTrain, kValid, kTest };
inline constexpr std::array<Split, 3> kSplits = {Split::kTrain, Split::kValid, Split::kTest};
// As Megatron names it: "train", "valid", "test".
const char* NameOf(Split split);

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

// `--split`, e.g. "99,1,0", as shares of 1: where the parts for train, valid and test begin and
// end. A part of weight zero is absent. Throws DataError when the text holds no positive number or
// more than three.
using SplitShares = std::array<std::optional<std::pair<double, double>>, 3>;
SplitShares ParseSplit(const std::string& split);

// The parts of 0 .. count, with Megatron's arithmetic and rounding.
std::array<std::optional<Range>, 3> SplitRanges(const std::string& split, int64_t count);

}  // namespace muster::data
