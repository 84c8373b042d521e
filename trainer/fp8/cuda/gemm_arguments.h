#pragma once

#include <cstdint>

// What a product is called with; no CUDA here.

namespace muster::fp8::cuda {

// What every Run gets to work in. More does not help on Hopper.
constexpr int64_t kGemmWorkspaceBytes = int64_t{32} << 20;

// Operands and result start at multiples of this.
constexpr int64_t kGemmAlignment = 256;

// Each scale has 16 bytes to itself: cuBLAS 13 runs no FP8 product whose scales are aligned less.
constexpr int64_t kScaleAlignment = 16;

// Device pointers; the result must not overlap an operand, nor `addend` but as a whole.
struct GemmArguments {
  const void* left;
  const void* right;
  void* out;
  // FP8 only: one float each, aligned to kScaleAlignment; the product is multiplied by both.
  const float* left_scale_inv = nullptr;
  const float* right_scale_inv = nullptr;
  // Of a product that accumulates: what it is added to, of the result's type; null: the result
  // itself.
  const void* addend = nullptr;
};

}  // namespace muster::fp8::cuda
