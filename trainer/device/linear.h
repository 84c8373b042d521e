#pragma once

#include <vector>

#include "trainer/device/ops.h"
#include "trainer/device/scaler.h"
#include "trainer/device/weights.h"
#include "trainer/fp8/cuda/linear_gemms.h"

namespace muster::device {

// The three products of one weight. The gradient of the weight is added to its main gradient.
class Linear {
 public:
  // `weight` must outlive this.
  Linear(Ops* ops, const Weight* weight, const fp8::cuda::LinearGemms& gemms)
      : ops_(ops), weight_(weight), gemms_(gemms), first_weight_gradient_(gemms.weight_gradient) {
    first_weight_gradient_.accumulate = false;
  }

  int64_t number() const { return weight_->linear; }

  // `residual`: what y is added to, where the products were made so.
  void Forward(const Operand& x, Bfloat16* y, const Bfloat16* residual = nullptr) const {
    const Operand& w = weight_->operand;
    ops_->Gemm(gemms_.forward, {x.rows, w.rows, y, x.scale_inv, w.scale_inv, residual});
  }
  void InputGradient(const Operand& dy, Bfloat16* dx) const {
    const Operand& w = weight_->operand;
    ops_->Gemm(gemms_.input_gradient, {dy.rows, w.columns, dx, dy.scale_inv, w.scale_inv});
  }
  // `overwrite`: the main gradient holds nothing yet.
  void WeightGradient(const Operand& dy, const Operand& x, bool overwrite) const {
    ops_->Gemm(overwrite ? first_weight_gradient_ : gemms_.weight_gradient,
               {dy.columns, x.columns, Gradient(), dy.scale_inv, x.scale_inv});
  }
  void AppendProducts(std::vector<fp8::cuda::GemmSpec>& specs) const {
    specs.insert(specs.end(), {gemms_.forward, gemms_.input_gradient, gemms_.weight_gradient,
                               first_weight_gradient_});
  }

 private:
  void* Gradient() const {
    if (weight_->bf16_grad != nullptr) return weight_->bf16_grad;
    return weight_->grad;
  }

  Ops* ops_;
  const Weight* weight_;
  fp8::cuda::LinearGemms gemms_;
  fp8::cuda::GemmSpec first_weight_gradient_;
};

}  // namespace muster::device
