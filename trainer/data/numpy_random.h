#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

// numpy's generators, bit for bit, because Megatron's data order is defined by them.

namespace muster::data {

// numpy.random.RandomState(seed): MT19937, seeded the legacy way. One thread.
class NumpyRandomState {
 public:
  explicit NumpyRandomState(uint32_t seed);

  // RandomState.shuffle of a one-dimensional array. No draw depends on a value, so some are drawn
  // ahead, and the memory that they lead to is on its way when it is needed.
  template <typename T>
  void Shuffle(std::span<T> values) {
    ShuffleSome(values, std::numeric_limits<int64_t>::max());
  }

  // The same, but ends after the first draws, about `most`; returns how many.
  template <typename T>
  int64_t ShuffleSome(std::span<T> values, int64_t most) {
    std::array<uint64_t, 64> drawn;
    const uint64_t size = values.size();
    uint64_t left = size;
    while (left > 1 && static_cast<int64_t>(size - left) < most) {
      const uint64_t count = std::min<uint64_t>(drawn.size(), left - 1);
      for (uint64_t k = 0; k < count; ++k) {
        drawn[k] = Interval(left - 1 - k);
        __builtin_prefetch(&values[drawn[k]], 1);
      }
      for (uint64_t k = 0; k < count; ++k) std::swap(values[left - 1 - k], values[drawn[k]]);
      left -= count;
    }
    return static_cast<int64_t>(size - left);
  }

 private:
  uint32_t Next();
  // Uniform in 0..max, by masking and rejection.
  uint64_t Interval(uint64_t max);
  void Refill();

  static constexpr int kStateSize = 624;
  std::array<uint32_t, kStateSize> state_;
  int position_ = kStateSize;
};

// numpy.random.default_rng(seed).integers(low, high, size, dtype=int32): PCG64.
std::vector<int32_t> NumpyIntegers(uint32_t seed, int32_t low, int32_t high, int64_t size);

}  // namespace muster::data
