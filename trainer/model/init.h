#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

// Initial weights that depend on the seed, the parameter's name and the element's index alone, so a
// rank that holds a slice draws the values that a rank with the whole tensor would: the same model
// whatever the parallel layout. CUDA code shares this file.

namespace muster::model {

constexpr uint64_t SplitMix64(uint64_t counter) {
  uint64_t z = (counter + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// Of the tensor `name`: splitmix64(seed ^ fnv1a64(name)).
uint64_t InitialKey(uint64_t seed, std::string_view name);

// Element `index` of that tensor, standard normal. Elements 2p and 2p + 1 are the cosine and sine
// branch of a Box-Muller pair of uniforms from splitmix64 at counters key + 2p and key + 2p + 1 (53
// bits; the first from (0, 1]).
#ifdef __CUDACC__
__host__ __device__
#endif
    inline double
    InitialNormal(uint64_t key, int64_t index) {
  constexpr double kTwoPi = 6.283185307179586;
  constexpr double kUnit = 1.0 / 9007199254740992.0;  // 2^-53
  const uint64_t pair = key + (static_cast<uint64_t>(index) & ~uint64_t{1});
  const double u = static_cast<double>((SplitMix64(pair) >> 11) + 1) * kUnit;
  const double angle = kTwoPi * static_cast<double>(SplitMix64(pair + 1) >> 11) * kUnit;
  return std::sqrt(-2 * std::log(u)) * (index % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

// out[j] = std_dev * element first_index + j of the tensor `name`.
void FillNormal(uint64_t seed, std::string_view name, double std_dev, int64_t first_index,
                int64_t count, float* out);

}  // namespace muster::model
