#include "trainer/fp8/cuda/gemm_spec.h"

namespace muster::fp8::cuda {

const char* Name(ElementType type) {
  switch (type) {
    case ElementType::kE4m3:
      return "e4m3";
    case ElementType::kE5m2:
      return "e5m2";
    case ElementType::kBf16:
      return "bf16";
    case ElementType::kFp32:
      break;
  }
  return "fp32";
}

std::string ToString(const GemmSpec& spec) {
  std::string text = std::to_string(spec.m) + "x" + std::to_string(spec.n) + "x" +
                     std::to_string(spec.k) + " " + Name(spec.left) + "*" + Name(spec.right) + ">" +
                     Name(spec.out);
  if (spec.left_k_outer) text += " left-k-outer";
  if (spec.right_k_outer) text += " right-k-outer";
  if (spec.accumulate) text += " accumulate";
  if (spec.fast_accumulation) text += " fast";
  return text;
}

}  // namespace muster::fp8::cuda
