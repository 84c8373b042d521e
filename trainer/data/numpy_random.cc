#include "trainer/data/numpy_random.h"

#include <bit>

namespace muster::data {

NumpyRandomState::NumpyRandomState(uint32_t seed) {
  for (uint32_t i = 0; i < kStateSize; ++i) {
    state_[i] = seed;
    seed = 1812433253U * (seed ^ (seed >> 30)) + i + 1;
  }
}

void NumpyRandomState::Refill() {
  constexpr int kShift = 397;
  const auto twist = [this](int i, int next, int shifted) {
    const uint32_t y = (state_[i] & 0x80000000U) | (state_[next] & 0x7fffffffU);
    state_[i] = state_[shifted] ^ (y >> 1) ^ ((0U - (y & 1)) & 0x9908b0dfU);
  };
  // Three loops, so that no index needs a remainder.
  for (int i = 0; i < kStateSize - kShift; ++i) twist(i, i + 1, i + kShift);
  for (int i = kStateSize - kShift; i < kStateSize - 1; ++i) {
    twist(i, i + 1, i + kShift - kStateSize);
  }
  twist(kStateSize - 1, 0, kShift - 1);
  position_ = 0;
}

uint32_t NumpyRandomState::Next() {
  if (position_ == kStateSize) Refill();
  uint32_t y = state_[position_++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680U;
  y ^= (y << 15) & 0xefc60000U;
  return y ^ (y >> 18);
}

uint64_t NumpyRandomState::Interval(uint64_t max) {
  if (max == 0) return 0;
  const uint64_t mask = ~uint64_t{0} >> std::countl_zero(max);
  while (true) {
    uint64_t value = Next();
    if (max > 0xffffffffU) value = (value << 32) | Next();
    value &= mask;
    if (value <= max) return value;
  }
}

namespace {

__extension__ using uint128 = unsigned __int128;

// numpy.random.SeedSequence(seed).generate_state(8, uint32).
std::array<uint32_t, 8> SeedSequenceState(uint32_t seed) {
  constexpr int kPool = 4;
  uint32_t hash = 0x43b0d7e5U;
  const auto hash_mix = [&hash](uint32_t value) {
    value ^= hash;
    hash *= 0x931e8875U;
    value *= hash;
    return value ^ (value >> 16);
  };
  std::array<uint32_t, kPool> pool{};
  for (int i = 0; i < kPool; ++i) pool[i] = hash_mix(i == 0 ? seed : 0);
  for (int from = 0; from < kPool; ++from) {
    for (int to = 0; to < kPool; ++to) {
      if (from == to) continue;
      const uint32_t mixed = 0xca01f9ddU * pool[to] - 0x4973f715U * hash_mix(pool[from]);
      pool[to] = mixed ^ (mixed >> 16);
    }
  }
  std::array<uint32_t, 8> state{};
  hash = 0x8b51f9ddU;
  for (size_t i = 0; i < state.size(); ++i) {
    uint32_t value = pool[i % kPool] ^ hash;
    hash *= 0x58f38dedU;
    value *= hash;
    state[i] = value ^ (value >> 16);
  }
  return state;
}

// PCG64 (XSL RR 128/64) with numpy's halving of each draw into two 32-bit ones.
class Pcg64 {
 public:
  explicit Pcg64(uint32_t seed) {
    const auto s = SeedSequenceState(seed);
    const auto wide = [&s](int i) {
      const uint64_t high = (uint64_t{s[i + 1]} << 32) | s[i];
      const uint64_t low = (uint64_t{s[i + 3]} << 32) | s[i + 2];
      return (uint128{high} << 64) | low;
    };
    increment_ = (wide(4) << 1) | 1;
    Step();
    state_ += wide(0);
    Step();
  }

  uint32_t Next32() {
    if (half_ready_) {
      half_ready_ = false;
      return half_;
    }
    Step();
    const auto folded = static_cast<uint64_t>(state_ >> 64) ^ static_cast<uint64_t>(state_);
    const uint64_t drawn = std::rotr(folded, static_cast<int>(state_ >> 122));
    half_ = static_cast<uint32_t>(drawn >> 32);
    half_ready_ = true;
    return static_cast<uint32_t>(drawn);
  }

 private:
  void Step() {
    constexpr uint128 kMultiplier = (uint128{0x2360ED051FC65DA4U} << 64) | 0x4385DF649FCCF645U;
    state_ = state_ * kMultiplier + increment_;
  }

  uint128 state_ = 0;
  uint128 increment_ = 0;
  uint32_t half_ = 0;
  bool half_ready_ = false;
};

}  // namespace

std::vector<int32_t> NumpyIntegers(uint32_t seed, int32_t low, int32_t high, int64_t size) {
  Pcg64 generator(seed);
  const auto range = static_cast<uint32_t>(high - low);
  const uint32_t threshold = (0U - range) % range;
  std::vector<int32_t> values(static_cast<size_t>(size));
  for (int32_t& value : values) {
    uint64_t product = uint64_t{generator.Next32()} * range;
    while (static_cast<uint32_t>(product) < threshold) {
      product = uint64_t{generator.Next32()} * range;
    }
    value = low + static_cast<int32_t>(product >> 32);
  }
  return values;
}

}  // namespace muster::data
