#include "trainer/model/init.h"

#include <cmath>

namespace muster::model {
namespace {

constexpr double kTwoPi = 6.283185307179586;
constexpr double kUnit = 1.0 / 9007199254740992.0;  // 2^-53

uint64_t Fnv1a64(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

uint64_t SplitMix64(uint64_t counter) {
  uint64_t z = (counter + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

void FillNormal(uint64_t seed, std::string_view name, double std_dev, int64_t first_index,
                int64_t count, float* out) {
  const uint64_t key = SplitMix64(seed ^ Fnv1a64(name));
  for (int64_t i = first_index; i < first_index + count; ++i) {
    const uint64_t pair = key + (static_cast<uint64_t>(i) & ~uint64_t{1});
    const double u = static_cast<double>((SplitMix64(pair) >> 11) + 1) * kUnit;
    const double angle = kTwoPi * static_cast<double>(SplitMix64(pair + 1) >> 11) * kUnit;
    const double normal =
        std::sqrt(-2 * std::log(u)) * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
    out[i - first_index] = static_cast<float>(std_dev * normal);
  }
}

}  // namespace muster::model
