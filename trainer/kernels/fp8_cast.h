#pragma once

#include <cstdint>

#include "trainer/fp8/formats.h"
#include "trainer/tensor/bfloat16.h"

// Casts to FP8 on raw pointers. T is float, double or Bfloat16; values pass through fp32, as on the
// GPU.

namespace muster::kernels {

// Largest |x|, NaN ignored (infinity not); 0 for no elements.
template <typename T>
float Amax(int64_t count, const T* x);

// codes = saturating cast of x * scale (product in fp32). `values`, unless null, gets the value of
// each code: what the reference GEMM multiplies.
template <typename T>
void CastToFp8(int64_t count, const T* x, float scale, fp8::Format format, uint8_t* codes,
               Accumulate<T>* values);

}  // namespace muster::kernels
