#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/fp8/quantized_tensor.h"

namespace muster::fp8 {

// The three matrix products of a linear layer on FP8 operands. T tokens, N outputs, K inputs; x is
// [T, K], w [N, K], dy [T, N]. Each product is scaled by the (fp32) product of its operands'
// scale_inv. This is the CPU reference: it multiplies the decoded values and sums in fp32 (fp64 for
// fp64 sources).
class Gemm {
 public:
  // Results are of type `output`; `round_to_bf16` passes y and dx through bf16 first, as a GPU's
  // GEMM would give them.
  Gemm(at::ScalarType output, bool round_to_bf16)
      : output_(output), round_to_bf16_(round_to_bf16) {}

  // y = x w^T
  at::Tensor Forward(const QuantizedTensor& x_TK, const QuantizedTensor& w_NK) const;
  // dx = dy w
  at::Tensor InputGradient(const QuantizedTensor& dy_TN, const QuantizedTensor& w_NK) const;
  // dw += dy^T x, in dw's own type: one rounding of the sum when that is bf16.
  static void AddWeightGradient(const QuantizedTensor& dy_TN, const QuantizedTensor& x_TK,
                                at::Tensor dw_NK);

 private:
  at::Tensor Finish(const at::Tensor& sums) const;

  at::ScalarType output_;
  bool round_to_bf16_;
};

}  // namespace muster::fp8
