#include "trainer/fp8/gemm.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include "trainer/tensor/dtype.h"

namespace muster::fp8 {
namespace {

double Scale(const QuantizedTensor& a, const QuantizedTensor& b) {
  return static_cast<double>(*Data<float>(a.scale_inv) * *Data<float>(b.scale_inv));
}

// The scale is applied to finished sums: the operands are exact, so their sums have no other
// rounding.
at::Tensor ScaledProduct(const at::Tensor& a, const at::Tensor& b, double scale) {
  return at::mm(a, b).mul_(scale);
}

}  // namespace

at::Tensor Gemm::Finish(const at::Tensor& sums) const {
  return (round_to_bf16_ ? sums.to(at::kBFloat16) : sums).to(output_);
}

at::Tensor Gemm::Forward(const QuantizedTensor& x_TK, const QuantizedTensor& w_NK) const {
  return Finish(ScaledProduct(x_TK.values, w_NK.values.t(), Scale(x_TK, w_NK)));
}

at::Tensor Gemm::InputGradient(const QuantizedTensor& dy_TN, const QuantizedTensor& w_NK) const {
  return Finish(ScaledProduct(dy_TN.values, w_NK.values, Scale(dy_TN, w_NK)));
}

void Gemm::AddWeightGradient(const QuantizedTensor& dy_TN, const QuantizedTensor& x_TK,
                             at::Tensor dw_NK) {
  const at::Tensor dy_NT = dy_TN.values.t();
  if (dw_NK.scalar_type() == dy_NT.scalar_type()) {
    dw_NK.addmm_(dy_NT, x_TK.values, /*beta=*/1, /*alpha=*/Scale(dy_TN, x_TK));
  } else {
    dw_NK.add_(ScaledProduct(dy_NT, x_TK.values, Scale(dy_TN, x_TK)));
  }
}

}  // namespace muster::fp8
