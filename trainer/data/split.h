#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace muster::data {

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

// `--split`, e.g. "99,1,0": the parts of 0 .. count for train, valid and test, with Megatron's
// arithmetic and rounding. A part of weight zero is absent. Throws DataError when the text holds no
// positive number or more than three.
std::array<std::optional<Range>, 3> SplitRanges(const std::string& split, int64_t count);

}  // namespace muster::data
