#pragma once

#include <cstdint>
#include <vector>

// Which coordinate a rank has and who shares each of its groups, in Megatron's order "tp-cp-dp-pp":
// tensor fastest, pipeline slowest. Pure.

namespace muster::parallel {

struct ParallelSizes {
  int64_t tensor = 1;
  int64_t context = 1;
  int64_t data = 1;
  int64_t pipeline = 1;

  int64_t world() const { return tensor * context * data * pipeline; }
};

struct Coordinate {
  int64_t tensor = 0;
  int64_t context = 0;
  int64_t data = 0;
  int64_t pipeline = 0;

  friend bool operator==(const Coordinate&, const Coordinate&) = default;
};

// rank = tensor + TP * (context + CP * (data + DP * pipeline)), and its inverse.
int64_t RankOf(const ParallelSizes& sizes, const Coordinate& coordinate);
Coordinate CoordinateOf(const ParallelSizes& sizes, int64_t rank);

// The dimensions along which the members of a group differ.
struct GroupDims {
  bool tensor = false;
  bool context = false;
  bool data = false;
  bool pipeline = false;
};
inline constexpr GroupDims kDataContextGroup = {.context = true,
                                                .data = true};  // gradient and loss sums
inline constexpr GroupDims kAmaxGroup = {
    .tensor = true, .context = true, .data = true};  // FP8 amaxes
inline constexpr GroupDims kTensorAmaxGroup = {.tensor = true,
                                               .context = true};  // with --tp-only-amax-red

// The ranks of `rank`'s group, ascending; `rank` is one of them.
std::vector<int64_t> GroupOf(const ParallelSizes& sizes, const GroupDims& dims, int64_t rank);

}  // namespace muster::parallel
