#include "trainer/layers/linear.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

#include "trainer/tensor/dtype.h"

namespace muster::layers {

using fp8::Role;

void AddWeightGradient(const at::Tensor& dy_TN, const at::Tensor& x_TK, at::Tensor dw_NK) {
  // bf16 operands too are summed in fp32, as a GPU's GEMM does into its main gradient.
  const at::ScalarType sum = AccumulateType(dy_TN.scalar_type());
  const at::Tensor dy_NT = dy_TN.to(sum).t();
  if (dw_NK.scalar_type() == sum) {
    dw_NK.addmm_(dy_NT, x_TK.to(sum));
  } else {
    dw_NK.add_(at::mm(dy_NT, x_TK.to(sum)));
  }
}

fp8::QuantizedTensor Linear::QuantizedWeight(const Context& ctx) {
  fp8::Recipe& recipe = *ctx.numerics().recipe;
  if (!ctx.training()) return recipe.Quantize(number_, Role::kWeight, weight_->Get(ctx), false);
  if (stale_) quantized_ = recipe.Quantize(number_, Role::kWeight, weight_->Get(ctx), true);
  stale_ = false;
  return quantized_;
}

at::Tensor Linear::Forward(Context& ctx, const at::Tensor& x_TK) {
  fp8::Recipe* const recipe = ctx.numerics().recipe;
  if (recipe == nullptr) {
    ctx.Save(x_TK);
    return at::mm(x_TK, weight_->Get(ctx).t());
  }
  const fp8::QuantizedTensor x = recipe->Quantize(number_, Role::kInput, x_TK, ctx.training());
  ctx.Save(x);
  return ctx.numerics().gemm.Forward(x, QuantizedWeight(ctx));
}

at::Tensor Linear::Backward(Context& ctx, const at::Tensor& dy_TN) {
  fp8::Recipe* const recipe = ctx.numerics().recipe;
  if (recipe == nullptr) {
    AddWeightGradient(dy_TN, ctx.Restore(), weight_->gradient());
    return at::mm(dy_TN, weight_->Get(ctx));
  }
  const fp8::QuantizedTensor dy = recipe->Quantize(number_, Role::kGradOutput, dy_TN, true);
  fp8::Gemm::AddWeightGradient(dy, ctx.RestoreQuantized(), weight_->gradient());
  return ctx.numerics().gemm.InputGradient(dy, QuantizedWeight(ctx));
}

}  // namespace muster::layers
