#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

// numpy's generators, bit for bit, because Megatron's data order is defined by them.

namespace muster::data {

// numpy.random.RandomState(seed): MT19937, seeded the legacy way. One thread.
class NumpyRandomState {
 public:
  explicit NumpyRandomState(uint32_t seed);

  // RandomState.shuffle of a one-dimensional array.
  template <typename T>
  void Shuffle(std::span<T> values) {
    for (uint64_t i = values.size(); i-- > 1;) std::swap(values[i], values[Interval(i)]);
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
