#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "trainer/config/model_config.h"
#include "trainer/fp8/formats.h"

// The rules by which scales follow from amaxes, as Transformer Engine has them. Scalars and plain
// arrays, no LibTorch.

namespace muster::fp8 {

inline float ScaleInverse(float scale) {
  return 1.0f / scale;
}

// Current ("tensorwise") scaling: maps `amax` to the format's largest value. An amax below
// `epsilon` counts as epsilon; 0, infinity and NaN give 1; an overflow gives the largest float.
// `power_of_two` rounds down to a power of two.
float CurrentScale(float amax, Format format, float epsilon = 0.0f, bool power_of_two = false);

// Delayed scaling of `count` tensors of one direction and format. All arrays row-major.
struct DelayedRule {
  int64_t history_len;  // H
  config::AmaxAlgo algo;
  int margin;
  Format format;
};

// One update after a forward or a backward. For each tensor: a = reduced_amax, or history row 0
// where that is 0. a = 0 (the tensor was not used): nothing changes. Else the rows move up by one,
// the last row becomes a, row 0 becomes 0, and the scale follows from the largest of a and the OLD
// rows 1 .. H-1 (H values: the oldest one counts a last time), or from a alone (most recent). When
// that largest is infinite, the scale stays as it is. `scale` [count], `history` [H, count],
// `reduced_amax` [count].
void UpdateDelayed(const DelayedRule& rule, int64_t count, const float* reduced_amax, float* scale,
                   float* history);

}  // namespace muster::fp8
