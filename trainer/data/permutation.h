#pragma once

#include <array>
#include <cstdint>

namespace muster::data {

// A permutation of 0 .. size that is computed, not stored: the k-th element in constant time and
// memory. It is defined by size, seed and epoch alone (docs/datasets.md, "streamed-1"), so every
// rank has the same and nothing need be saved. A value; any thread.
class Permutation {
 public:
  // size >= 1.
  Permutation(int64_t size, uint64_t seed, uint64_t epoch);

  // Element i, 0 <= i < size.
  int64_t operator()(int64_t i) const;

 private:
  static constexpr int kRounds = 8;

  uint64_t Encipher(uint64_t x) const;

  uint64_t size_;
  int half_bits_;
  uint64_t half_mask_;
  std::array<uint64_t, kRounds> keys_;
};

}  // namespace muster::data
