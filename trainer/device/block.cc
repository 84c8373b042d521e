#include "trainer/device/block.h"

namespace muster::device {
namespace {

using fp8::Role;
using kernels::Fp8Output;

// `adds`: the result is added to the residual stream.
Linear MakeLinear(Ops* ops, const Shape& shape, const Weight* weight, const StateTypes& types,
                  bool adds) {
  namespace cuda = fp8::cuda;
  const cuda::LinearShape sizes{shape.tokens(), weight->rows, weight->columns};
  const fp8::Format gradient = fp8::FormatOf(shape.model.fp8.format, Role::kGradOutput);
  cuda::LinearGemms gemms =
      shape.fp8() ? cuda::Fp8LinearGemms(
                        sizes, gradient, shape.fast,
                        types.bf16_gradients ? cuda::ElementType::kBf16 : cuda::ElementType::kFp32)
                  : cuda::Bf16LinearGemms(sizes, cuda::ElementType::kFp32);
  gemms.forward.accumulate = adds;
  return {ops, weight, gemms};
}

}  // namespace

void Workspace::Plan(Planner& planner, const Shape& shape) {
  const int64_t T = shape.tokens(), C = shape.hidden(), F = shape.ffn(), A = shape.attention();
  const int64_t Q = kernels::PackedColumns(shape.Qkv());
  const int64_t angles = shape.model.seq_length * shape.model.kv_channels / 2;
  WantConst(planner, &cos, "rope.cos", angles);
  WantConst(planner, &sin, "rope.sin", angles);
  planner.Want(&gradient, "gradient", T * C, kHeadNormBackward, kBackwardEnd);
  planner.Want(&dswiglu, "dswiglu", T * F, kFc2Input, kSwigluBackward);
  planner.Want(&dnorm, "dnorm", T * C, kFc1Input, kBackwardEnd);
  planner.Want(&dattention, "dattention", T * A, kProjInput, kAttentionBackward);
  planner.Want(&dqkv, "dqkv", T * Q, kAttentionBackward, kQkvInput);
  if (!shape.fp8()) {
    planner.Want(&swiglu, "swiglu", T * F, kSwiglu, kFc2Weight);
    return;
  }
  planner.Want(&gradient_codes, "gradient.fp8", T * C, kHeadNormBackward, kBackwardEnd);
  planner.Want(&gradient_transposed, "gradient.fp8_transposed", T * C, kHeadNormBackward,
               kBackwardEnd);
  // A layer that runs forward again in its backward needs these while the gradient is there.
  const bool again = shape.recomputed_layers > 0;
  planner.Want(&norm_codes, "norm.fp8", T * C, kNormQkv, again ? kFc2Input : kFc1);
  planner.Want(&attention_codes, "attention.fp8", T * A, kCastAttention, again ? kFc2Input : kProj);
  planner.Want(&swiglu_codes, "swiglu.fp8", T * F, kSwiglu, kFc2);
  planner.Want(&swiglu_again, "swiglu.fp8_transposed", T * F, kSwigluBackward, kFc2Weight);
  planner.Want(&fc1_codes, "dfc1.fp8", 2 * T * F, kSwigluBackward, kFc1Input);
  planner.Want(&fc1_transposed, "dfc1.fp8_transposed", 2 * T * F, kSwigluBackward, kFc1Weight);
  planner.Want(&qkv_codes, "dqkv.fp8", T * Q, kRopeBackward, kQkvInput);
  planner.Want(&qkv_transposed, "dqkv.fp8_transposed", T * Q, kRopeBackward, kQkvWeight);
}

void Saved::Plan(Planner& planner, const Shape& shape, const std::string& prefix,
                 bool keeps_swiglu) {
  const int64_t T = shape.tokens(), C = shape.hidden(), F = shape.ffn(), A = shape.attention();
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
    if (keeps_swiglu) planner.Want(&fc2_input, prefix + "fc2_input", T * F);
  } else {
    planner.Want(&attention_norm, prefix + "attention_norm", T * C);
    planner.Want(&mlp_norm, prefix + "mlp_norm", T * C);
  }
}

Block::Block(Ops* ops, Scaler* scaler, const Shape& shape, const Workspace* workspace,
             const Saved* shared, const Parts& parts, const StateTypes& types)
    : ops_(ops),
      scaler_(scaler),
      shape_(shape),
      ws_(*workspace),
      parts_(parts),
      qkv_(MakeLinear(ops, shape, parts.qkv, types, false)),
      proj_(MakeLinear(ops, shape, parts.proj, types, true)),
      fc1_(MakeLinear(ops, shape, parts.fc1, types, false)),
      fc2_(MakeLinear(ops, shape, parts.fc2, types, true)),
      saved_(shared != nullptr ? *shared : own_),
      recompute_(shared != nullptr) {}

void Block::Plan(Planner& planner, const std::string& prefix) {
  planner.Want(&input_, prefix + "input", shape_.tokens() * shape_.hidden());
  if (!recompute_) own_.Plan(planner, shape_, prefix, !shape_.recompute_swiglu);
}

void Block::AppendProducts(std::vector<fp8::cuda::GemmSpec>& specs) const {
  for (const Linear* linear : {&qkv_, &proj_, &fc1_, &fc2_}) {
    linear->AppendProducts(specs);
  }
}

Operand StreamGradient::AddNorm(const Weight& norm, const Bfloat16* dy, const Bfloat16* input,
                                const float* rstd, int64_t consumer) const {
  if (scaler_ == nullptr || consumer < 0) {
    ops_->RmsNormBackward(shape_, dy, input, norm.copy, rstd, ws_.gradient, norm.grad);
    return {ws_.gradient, ws_.gradient, nullptr};
  }
  return scaler_->Make(consumer, Role::kGradOutput, ws_.gradient_codes, ws_.gradient_transposed,
                       true, [&](const Fp8Output& out, bool again) {
                         if (again) {
                           ops_->CastToFp8(shape_.rows, shape_.columns, ws_.gradient, out);
                         } else {
                           ops_->RmsNormBackwardFp8(shape_, dy, input, norm.copy, rstd,
                                                    ws_.gradient, norm.grad, out);
                         }
                       });
}

template <typename Produce>
Operand Block::MakeInput(const Linear& linear, uint8_t* codes, uint8_t* transposed, Run run,
                         const Produce& produce) const {
  if (run != Run::kAgain) {
    return scaler_->Make(linear.number(), Role::kInput, codes, transposed, run == Run::kTraining,
                         [&](const Fp8Output& out, bool) { produce(out); });
  }
  produce(scaler_->InputAgain(linear.number(), codes, transposed));
  return scaler_->InputOperand(linear.number(), codes, transposed);
}

Operand Block::Norm(const Weight* weight, const Bfloat16* input, const Linear& consumer,
                    float* rstd, uint8_t* transposed, Bfloat16* plain, Run run) const {
  if (scaler_ == nullptr) {
    ops_->RmsNormForward(shape_.Norm(), input, weight->copy, plain, rstd);
    return {plain, plain, nullptr};
  }
  return MakeInput(consumer, ws_.norm_codes, transposed, run, [&](const Fp8Output& out) {
    ops_->RmsNormFp8(shape_.Norm(), input, weight->copy, rstd, out);
  });
}

void Block::ForwardToSwiglu(Run run) {
  const Operand qkv_input = Norm(parts_.attention_norm, input_, qkv_, saved_.attention_rstd,
                                 saved_.qkv_input, saved_.attention_norm, run);
  qkv_.Forward(qkv_input, saved_.qkv);
  ops_->RopePacked(shape_.Qkv(), ws_.cos, ws_.sin, saved_.qkv);
  ops_->AttentionForward(saved_.qkv, saved_.attention, saved_.logsumexp);
  Operand proj_input{saved_.attention, saved_.attention, nullptr};
  if (scaler_ != nullptr) {
    proj_input =
        MakeInput(proj_, ws_.attention_codes, saved_.proj_input, run, [&](const Fp8Output& out) {
          ops_->CastToFp8(shape_.tokens(), shape_.attention(), saved_.attention, out);
        });
  }
  proj_.Forward(proj_input, saved_.mlp_input, input_);
  const Operand fc1_input = Norm(parts_.mlp_norm, saved_.mlp_input, fc1_, saved_.mlp_rstd,
                                 saved_.fc1_input, saved_.mlp_norm, run);
  fc1_.Forward(fc1_input, saved_.gate_up);
}

void Block::Forward(Bfloat16* output, Run run) {
  const int64_t T = shape_.tokens(), F = shape_.ffn();
  ForwardToSwiglu(run);
  Operand fc2_input{ws_.swiglu, ws_.swiglu, nullptr};
  if (scaler_ != nullptr) {
    fc2_input = MakeInput(fc2_, ws_.swiglu_codes, saved_.fc2_input, run, [&](const Fp8Output& out) {
      ops_->SwigluForwardFp8(T, F, saved_.gate_up, out);
    });
  } else {
    ops_->SwigluForward(T, F, saved_.gate_up, ws_.swiglu);
  }
  fc2_.Forward(fc2_input, output, saved_.mlp_input);
}

Operand Block::Input(const Linear& linear, const uint8_t* transposed, const Bfloat16* plain) const {
  if (scaler_ == nullptr) return {plain, plain, nullptr};
  return scaler_->InputOperand(linear.number(), nullptr, transposed);
}

// A product for an input's gradient comes right before what reads it, which then finds some of it
// in the L2 cache; so the weight's gradient comes first.
Operand Block::Backward(const StreamGradient& gradient, const Operand& dy, int64_t consumer,
                        bool first) {
  const int64_t T = shape_.tokens(), F = shape_.ffn();
  if (recompute_) ForwardToSwiglu(Run::kAgain);
  fc2_.InputGradient(dy, ws_.dswiglu);
  // Where fc2's input was not kept, the pass that makes fc1's gradient also makes it again.
  const uint8_t* const fc2_input =
      saved_.fc2_input != nullptr ? saved_.fc2_input : ws_.swiglu_again;
  Operand dfc1{saved_.gate_up, saved_.gate_up, nullptr};
  if (scaler_ != nullptr) {
    const Fp8Output input_again =
        saved_.fc2_input != nullptr ? Fp8Output{}
                                    : scaler_->InputAgain(fc2_.number(), nullptr, ws_.swiglu_again);
    dfc1 = scaler_->Make(fc1_.number(), Role::kGradOutput, ws_.fc1_codes, ws_.fc1_transposed, true,
                         [&](const Fp8Output& out, bool) {
                           const bool codes = out.scale != nullptr;
                           ops_->SwigluBackwardFp8(T, F, ws_.dswiglu, saved_.gate_up, out,
                                                   codes ? input_again : Fp8Output{});
                         });
  } else {
    ops_->SwigluBackwardAgain(T, F, ws_.dswiglu, saved_.gate_up, saved_.gate_up, ws_.swiglu);
  }
  fc2_.WeightGradient(dy, Input(fc2_, fc2_input, ws_.swiglu), first);
  fc1_.WeightGradient(dfc1, Input(fc1_, saved_.fc1_input, saved_.mlp_norm), first);
  fc1_.InputGradient(dfc1, ws_.dnorm);
  const Operand dproj = gradient.AddNorm(*parts_.mlp_norm, ws_.dnorm, saved_.mlp_input,
                                         saved_.mlp_rstd, proj_.number());

  proj_.WeightGradient(dproj, Input(proj_, saved_.proj_input, saved_.attention), first);
  proj_.InputGradient(dproj, ws_.dattention);
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
  qkv_.WeightGradient(dqkv, Input(qkv_, saved_.qkv_input, saved_.attention_norm), first);
  qkv_.InputGradient(dqkv, ws_.dnorm);
  return gradient.AddNorm(*parts_.attention_norm, ws_.dnorm, input_, saved_.attention_rstd,
                          consumer);
}

}  // namespace muster::device
