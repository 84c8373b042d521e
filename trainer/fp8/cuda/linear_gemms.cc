#include "trainer/fp8/cuda/linear_gemms.h"

namespace muster::fp8::cuda {

LinearGemms Fp8LinearGemms(const LinearShape& shape, Format gradient, FastAccumulation fast,
                           ElementType main_gradient) {
  const auto [T, N, K] = shape;
  const ElementType dy = ToElementType(gradient);
  LinearGemms gemms{
      .forward = {T, N, K, ElementType::kE4m3, ElementType::kE4m3, ElementType::kBf16},
      .input_gradient = {T, K, N, dy, ElementType::kE4m3, ElementType::kBf16},
      .weight_gradient = {N, K, T, dy, ElementType::kE4m3, main_gradient}};
  gemms.forward.fast_accumulation = fast.forward;
  gemms.input_gradient.fast_accumulation = fast.input_gradient;
  gemms.weight_gradient.fast_accumulation = fast.weight_gradient;
  gemms.weight_gradient.accumulate = true;
  return gemms;
}

LinearGemms Bf16LinearGemms(const LinearShape& shape, ElementType main_gradient) {
  const auto [T, N, K] = shape;
  constexpr ElementType kBf16 = ElementType::kBf16;
  LinearGemms gemms{.forward = {T, N, K, kBf16, kBf16, kBf16},
                    .input_gradient = {T, K, N, kBf16, kBf16, kBf16},
                    .weight_gradient = {N, K, T, kBf16, kBf16, main_gradient}};
  gemms.input_gradient.right_k_outer = true;
  gemms.weight_gradient.left_k_outer = true;
  gemms.weight_gradient.right_k_outer = true;
  gemms.weight_gradient.accumulate = true;
  return gemms;
}

}  // namespace muster::fp8::cuda
