#include "trainer/data/permutation.h"

#include <algorithm>
#include <bit>

namespace muster::data {
namespace {

// The finaliser of SplitMix64: every input bit changes every output bit with probability 1/2.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace

Permutation::Permutation(int64_t size, uint64_t seed, uint64_t epoch)
    : size_(static_cast<uint64_t>(size)),
      half_bits_(std::max(1, (static_cast<int>(std::bit_width(size_ - 1)) + 1) / 2)),
      half_mask_((uint64_t{1} << half_bits_) - 1),
      keys_{} {
  uint64_t key = Mix(Mix(seed) ^ epoch);
  for (uint64_t& round_key : keys_) round_key = key = Mix(key);
}

// A Feistel network on 2 * half_bits_ bits: one to one whatever the round function is.
uint64_t Permutation::Encipher(uint64_t x) const {
  uint64_t left = x >> half_bits_;
  uint64_t right = x & half_mask_;
  for (const uint64_t key : keys_) {
    const uint64_t mixed = left ^ (Mix(right ^ key) & half_mask_);
    left = right;
    right = mixed;
  }
  return left << half_bits_ | right;
}

int64_t Permutation::operator()(int64_t i) const {
  // Cycle walking: the network permutes up to four times as many numbers; those beyond the size are
  // enciphered again. A cycle that starts inside comes back inside, so this ends.
  auto x = static_cast<uint64_t>(i);
  do {
    x = Encipher(x);
  } while (x >= size_);
  return static_cast<int64_t>(x);
}

}  // namespace muster::data
