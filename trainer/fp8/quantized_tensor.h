#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/fp8/formats.h"

namespace muster::fp8 {

// A tensor in FP8: source = value(codes) * scale_inv, up to rounding. Keeps the scale it was
// quantised with, whatever becomes of the recipe's scales later. Cheap to copy (shares its
// tensors).
struct QuantizedTensor {
  at::Tensor codes;      // uint8, shape of the source
  at::Tensor scale_inv;  // fp32 [1], on the codes' device: what a scaled GEMM takes
  Format format = Format::kE4m3;
  // CPU only: the codes' values in the type that the reference GEMM sums in, so that each operand
  // is decoded once.
  at::Tensor values;
};

// Casts x (fp32, fp64 or bf16, contiguous) with `scale`, saturating.
QuantizedTensor Quantize(const at::Tensor& x, float scale, Format format);

// Largest |x| of a contiguous tensor, NaN ignored.
float Amax(const at::Tensor& x);

}  // namespace muster::fp8
