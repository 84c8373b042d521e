#include "trainer/device/block.h"

namespace muster::device {
namespace {

using fp8::Role;
using kernels::Fp8Output;

Linear MakeLinear(Ops* ops, const Shape& shape, const Weight* weight, const StateTypes& types) {
  namespace cuda = fp8::cuda;
  const cuda::LinearShape sizes{shape.tokens(), weight->rows, weight->columns};
  if (!shape.fp8()) {
    return {ops, weight, cuda::Bf16LinearGemms(sizes, cuda::ElementType::kFp32)};
  }
  const fp8::Format gradient = fp8::FormatOf(shape.model.fp8.format, Role::kGradOutput);
  return {ops, weight,
          cuda::Fp8LinearGemms(
              sizes, gradient, shape.fast,
              types.bf16_gradients ? cuda::ElementType::kBf16 : cuda::ElementType::kFp32)};
}

}  // namespace

void Workspace::Plan(Planner& planner, const Shape& shape) {
  const int64_t T = shape.tokens(), C = shape.hidden(), F = shape.ffn(), A = shape.attention();
  const int64_t Q = kernels::PackedColumns(shape.Qkv());
  const int64_t angles = shape.model.seq_length * shape.model.kv_channels / 2;
  WantConst(planner, &cos, "rope.cos", angles);
  WantConst(planner, &sin, "rope.sin", angles);
  planner.Want(&branch, "branch", T * C, kForwardStart, kHeadNorm);
  planner.Want(&gradient, "gradient", T * C, kHeadNormBackward, kBackwardEnd);
  planner.Want(&dswiglu, "dswiglu", T * F, kFc2Input, kSwigluBackward);
  planner.Want(&dnorm, "dnorm", T * C, kFc1Input, kBackwardEnd);
  planner.Want(&dattention, "dattention", T * A, kProjInput, kAttentionBackward);
  planner.Want(&dqkv, "dqkv", T * Q, kAttentionBackward, kQkvWeight);
  if (!shape.fp8()) {
    planner.Want(&swiglu, "swiglu", T * F, kSwiglu, kFc2Weight);
    return;
  }
  planner.Want(&norm_codes, "norm.fp8", T * C, kNormQkv, kFc1);
  planner.Want(&attention_codes, "attention.fp8", T * A, kCastAttention, kProj);
  planner.Want(&swiglu_codes, "swiglu.fp8", T * F, kSwiglu, kFc2);
  planner.Want(&fc2_codes, "dfc2.fp8", T * C, kCastFc2Gradient, kFc2Input);
  planner.Want(&fc2_transposed, "dfc2.fp8_transposed", T * C, kCastFc2Gradient, kFc2Weight);
  planner.Want(&swiglu_again, "swiglu.fp8_transposed", T * F, kSwigluBackward, kFc2Weight);
  planner.Want(&fc1_codes, "dfc1.fp8", 2 * T * F, kSwigluBackward, kFc1Input);
  planner.Want(&fc1_transposed, "dfc1.fp8_transposed", 2 * T * F, kSwigluBackward, kFc1Weight);
  planner.Want(&proj_codes, "dproj.fp8", T * C, kCastProjGradient, kProjInput);
  planner.Want(&proj_transposed, "dproj.fp8_transposed", T * C, kCastProjGradient, kProjWeight);
  planner.Want(&qkv_codes, "dqkv.fp8", T * Q, kRopeBackward, kQkvInput);
  planner.Want(&qkv_transposed, "dqkv.fp8_transposed", T * Q, kRopeBackward, kQkvWeight);
}

void Saved::Plan(Planner& planner, const Shape& shape, const std::string& prefix) {
  const int64_t T = shape.tokens(), C = shape.hidden(), F = shape.ffn(), A = shape.attention();
  planner.Want(&attention_input, prefix + "attention_input", T * C);
  planner.Want(&mlp_input, prefix + "mlp_input", T * C);
  planner.Want(&attention_rstd, prefix + "attention_rstd", T);
  planner.Want(&mlp_rstd, prefix + "mlp_rstd", T);
  planner.Want(&qkv, prefix + "qkv", T * kernels::PackedColumns(shape.Qkv()));
  planner.Want(&attention, prefix + "attention", T * A);
  planner.Want(&logsumexp, prefix + "logsumexp", T * shape.model.num_attention_heads);
  planner.Want(&gate_up, prefix + "gate_up", 2 * T * F);
  if (shape.fp8()) {
    planner.Want(&qkv_input, prefix + "qkv_input", T * C);
    planner.Want(&proj_input, prefix + "proj_input", T * A);
    planner.Want(&fc1_input, prefix + "fc1_input", T * C);
  } else {
    planner.Want(&attention_norm, prefix + "attention_norm", T * C);
    planner.Want(&mlp_norm, prefix + "mlp_norm", T * C);
  }
}

Block::Block(Ops* ops, Scaler* scaler, const Shape& shape, const Workspace* workspace,
             const Parts& parts, const StateTypes& types)
    : ops_(ops),
      scaler_(scaler),
      shape_(shape),
      ws_(*workspace),
      parts_(parts),
      qkv_(MakeLinear(ops, shape, parts.qkv, types)),
      proj_(MakeLinear(ops, shape, parts.proj, types)),
      fc1_(MakeLinear(ops, shape, parts.fc1, types)),
      fc2_(MakeLinear(ops, shape, parts.fc2, types)) {}

void Block::AppendProducts(std::vector<fp8::cuda::GemmSpec>& specs) const {
  for (const Linear* linear : {&qkv_, &proj_, &fc1_, &fc2_}) {
    linear->AppendProducts(specs);
  }
}

Operand Block::Norm(const Weight* weight, const Bfloat16* residual, const Linear& consumer,
                    Bfloat16* sum, float* rstd, uint8_t* transposed, Bfloat16* plain,
                    bool training) {
  if (scaler_ == nullptr) {
    ops_->ResidualRmsNorm(shape_.Norm(), ws_.branch, residual, weight->copy, sum, rstd, plain);
    return {plain, plain, nullptr};
  }
  return scaler_->Make(consumer.number(), Role::kInput, ws_.norm_codes, transposed, training,
                       [&](const Fp8Output& out, bool again) {
                         if (again) {
                           ops_->ResidualRmsNormFp8(shape_.Norm(), sum, nullptr, weight->copy,
                                                    nullptr, rstd, out);
                         } else {
                           ops_->ResidualRmsNormFp8(shape_.Norm(), ws_.branch, residual,
                                                    weight->copy, sum, rstd, out);
                         }
                       });
}

const Bfloat16* Block::Forward(const Bfloat16* residual, bool training) {
  const int64_t T = shape_.tokens(), F = shape_.ffn();
  const Operand qkv_input =
      Norm(parts_.attention_norm, residual, qkv_, saved_.attention_input, saved_.attention_rstd,
           saved_.qkv_input, saved_.attention_norm, training);
  qkv_.Forward(qkv_input, saved_.qkv);
  ops_->RopePacked(shape_.Qkv(), ws_.cos, ws_.sin, saved_.qkv);
  ops_->AttentionForward(saved_.qkv, saved_.attention, saved_.logsumexp);
  Operand proj_input{saved_.attention, saved_.attention, nullptr};
  if (scaler_ != nullptr) {
    proj_input = scaler_->Make(proj_.number(), Role::kInput, ws_.attention_codes, saved_.proj_input,
                               training, [&](const Fp8Output& out, bool) {
                                 ops_->CastToFp8(T, shape_.attention(), saved_.attention, out);
                               });
  }
  proj_.Forward(proj_input, ws_.branch);

  const Operand fc1_input = Norm(parts_.mlp_norm, saved_.attention_input, fc1_, saved_.mlp_input,
                                 saved_.mlp_rstd, saved_.fc1_input, saved_.mlp_norm, training);
  fc1_.Forward(fc1_input, saved_.gate_up);
  Operand fc2_input{ws_.swiglu, ws_.swiglu, nullptr};
  if (scaler_ != nullptr) {
    fc2_input = scaler_->Make(
        fc2_.number(), Role::kInput, ws_.swiglu_codes, nullptr, training,
        [&](const Fp8Output& out, bool) { ops_->SwigluForwardFp8(T, F, saved_.gate_up, out); });
  } else {
    ops_->SwigluForward(T, F, saved_.gate_up, ws_.swiglu);
  }
  fc2_.Forward(fc2_input, ws_.branch);
  return saved_.mlp_input;
}

Operand Block::CastGradient(const Linear& linear, const Bfloat16* dy, int64_t columns,
                            uint8_t* codes, uint8_t* transposed) {
  if (scaler_ == nullptr) return {dy, dy, nullptr};
  return scaler_->Make(
      linear.number(), Role::kGradOutput, codes, transposed, true,
      [&](const Fp8Output& out, bool) { ops_->CastToFp8(shape_.tokens(), columns, dy, out); });
}

void Block::NormBackward(const Weight* weight, const Bfloat16* input, const float* rstd) {
  ops_->RmsNormBackward(shape_.Norm(), ws_.dnorm, input, weight->copy, rstd, ws_.gradient,
                        weight->grad);
}

void Block::Backward(bool first) {
  const int64_t T = shape_.tokens(), C = shape_.hidden(), F = shape_.ffn();
  const Operand dfc2 = CastGradient(fc2_, ws_.gradient, C, ws_.fc2_codes, ws_.fc2_transposed);
  fc2_.InputGradient(dfc2, ws_.dswiglu);
  // The pass that makes fc1's gradient also makes fc2's input again, which was not kept.
  Operand dfc1{saved_.gate_up, saved_.gate_up, nullptr}, fc2_input{ws_.swiglu, ws_.swiglu, nullptr};
  if (scaler_ != nullptr) {
    const Fp8Output again = scaler_->InputAgain(fc2_.number(), ws_.swiglu_again);
    dfc1 = scaler_->Make(fc1_.number(), Role::kGradOutput, ws_.fc1_codes, ws_.fc1_transposed, true,
                         [&](const Fp8Output& out, bool) {
                           const bool codes = out.scale != nullptr;
                           ops_->SwigluBackwardFp8(T, F, ws_.dswiglu, saved_.gate_up, out,
                                                   codes ? again : Fp8Output{});
                         });
    fc2_input = scaler_->InputOperand(fc2_.number(), ws_.swiglu_again);
  } else {
    ops_->SwigluBackwardAgain(T, F, ws_.dswiglu, saved_.gate_up, saved_.gate_up, ws_.swiglu);
  }
  fc2_.WeightGradient(dfc2, fc2_input, first);
  fc1_.InputGradient(dfc1, ws_.dnorm);
  fc1_.WeightGradient(dfc1,
                      scaler_ != nullptr ? scaler_->InputOperand(fc1_.number(), saved_.fc1_input)
                                         : Operand{saved_.mlp_norm, saved_.mlp_norm, nullptr},
                      first);
  NormBackward(parts_.mlp_norm, saved_.mlp_input, saved_.mlp_rstd);

  const Operand dproj = CastGradient(proj_, ws_.gradient, C, ws_.proj_codes, ws_.proj_transposed);
  proj_.InputGradient(dproj, ws_.dattention);
  proj_.WeightGradient(dproj,
                       scaler_ != nullptr ? scaler_->InputOperand(proj_.number(), saved_.proj_input)
                                          : Operand{saved_.attention, saved_.attention, nullptr},
                       first);
  ops_->AttentionBackward(saved_.qkv, saved_.attention, saved_.logsumexp, ws_.dattention, ws_.dqkv);
  Operand dqkv{ws_.dqkv, ws_.dqkv, nullptr};
  if (scaler_ != nullptr) {
    dqkv =
        scaler_->Make(qkv_.number(), Role::kGradOutput, ws_.qkv_codes, ws_.qkv_transposed, true,
                      [&](const Fp8Output& out, bool) {
                        ops_->RopePackedGradientFp8(shape_.Qkv(), ws_.cos, ws_.sin, ws_.dqkv, out);
                      });
  } else {
    ops_->RopePackedGradient(shape_.Qkv(), ws_.cos, ws_.sin, ws_.dqkv);
  }
  qkv_.InputGradient(dqkv, ws_.dnorm);
  qkv_.WeightGradient(dqkv,
                      scaler_ != nullptr
                          ? scaler_->InputOperand(qkv_.number(), saved_.qkv_input)
                          : Operand{saved_.attention_norm, saved_.attention_norm, nullptr},
                      first);
  NormBackward(parts_.attention_norm, saved_.attention_input, saved_.attention_rstd);
}

}  // namespace muster::device
