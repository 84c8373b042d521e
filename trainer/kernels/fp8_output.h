#pragma once

#include <cstdint>

#include "trainer/fp8/formats.h"

namespace muster::kernels {

// Where a fused kernel leaves its result y [rows, columns] in FP8: codes = saturating cast of
// y * *scale, with y in fp32 (it is never rounded to bf16) and the product in fp32. Pointers are of
// the host for the CPU's kernels, of the device for CUDA's; 16-byte alignment makes the latter
// fast.
struct Fp8Output {
  fp8::Format format;
  const float* scale;   // read; null when nothing but amax is wanted
  uint8_t* codes;       // [rows, columns]; null: not wanted
  uint8_t* transposed;  // [columns, rows], the same codes; null: not wanted
  float* scale_inv;     // becomes 1 / *scale; null: not wanted
  float* amax;          // raised to the largest |y| (NaN ignored, infinity not); null: not wanted

  // Its twin that only finds the largest |y|: for scales that follow from the tensor itself.
  Fp8Output OnlyAmax(float* of) const { return {format, nullptr, nullptr, nullptr, nullptr, of}; }
};

}  // namespace muster::kernels
