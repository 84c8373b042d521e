#pragma once

#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <vector>

#include "trainer/tensor/bfloat16.h"

namespace muster::kernels {

// Kinds of input that every fused kernel is tested on.
enum class Input { kRandom, kZero, kSpecial, kHuge, kSubnormal };
inline constexpr Input kInputs[] = {Input::kRandom, Input::kZero, Input::kSpecial, Input::kHuge,
                                    Input::kSubnormal};

// Normal numbers of the kind. kSpecial: one in 97 is infinite, NaN, the largest number or so.
inline std::vector<float> Floats(Input input, int64_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  const float infinity = std::numeric_limits<float>::infinity();
  const float specials[] = {infinity, -infinity, std::nanf(""), -0.0f, 1e-40f, 3e38f, -3e38f};
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    const float x = normal(engine);
    if (input == Input::kRandom) values[i] = x;
    if (input == Input::kSpecial) {
      values[i] = i % 97 == seed % 97 ? specials[i / 97 % std::size(specials)] : x;
    }
    if (input == Input::kHuge) values[i] = x * 1e30f;
    if (input == Input::kSubnormal) values[i] = x * 1e-39f;
  }
  return values;
}

inline std::vector<Bfloat16> Bfloat16s(Input input, int64_t count, uint32_t seed) {
  std::vector<Bfloat16> values;
  for (const float x : Floats(input, count, seed)) values.push_back(Bfloat16(x));
  return values;
}

}  // namespace muster::kernels
