#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/index_array.h"

// Megatron's blending of several data sets. Pure.

namespace muster::data {

// `--data-path` and its kin.
struct BlendList {
  std::vector<std::string> prefixes;
  std::optional<std::vector<double>> weights;  // as given, one for each prefix
};

// WEIGHT PREFIX WEIGHT PREFIX ..., or prefixes only: an odd number of words, or no number in any
// weight's place. Throws DataError when only some of the weights are numbers.
BlendList ParseBlend(const std::vector<std::string>& words);

// Divides by the sum, with numpy's order of additions. Throws DataError unless the sum is positive.
std::vector<double> Normalize(const std::vector<double>& weights);

// Samples that each data set gives to a blend of `size`: ceil(size * weight), then a surplus on
// top. Throws DataError when that is more than can be counted.
std::vector<int64_t> SizesOfParts(const std::vector<double>& weights, int64_t size, double surplus);

struct BlendIndex {
  IndexArray<int16_t, int16_t> dataset;         // sample of the blend -> data set
  IndexArray<int64_t, int64_t> dataset_sample;  // and which of its samples
};
// Bytes of one sample in it.
inline constexpr int64_t kBlendBytesPerSample = sizeof(int16_t) + sizeof(int64_t);

// At each step the data set that lags most behind its weight gives its next sample.
BlendIndex BuildBlend(const std::vector<double>& weights, int64_t size);

// The same until every data set has given all of its samples.
BlendIndex BuildExhaustiveBlend(const std::vector<int64_t>& sizes);

}  // namespace muster::data
