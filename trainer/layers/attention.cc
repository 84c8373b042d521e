#include "trainer/layers/attention.h"

#include <ATen/ops/empty.h>

#include "trainer/layers/context_attention.h"
#include "trainer/tensor/dtype.h"

namespace muster::layers {

Attention::Rotation Attention::RotationOf(const Context& ctx) const {
  const Packing& packing = ctx.packing();
  const bool own_angles = packing.cos_TD.defined();
  const int64_t rows = own_angles ? 1 : ctx.batch();
  const int64_t positions = own_angles ? ctx.batch() * ctx.positions() : ctx.positions();
  return {{rows, positions, shape_.groups, shape_.heads_per_group, shape_.head_dim},
          own_angles ? packing.cos_TD : shape_.cos_SD,
          own_angles ? packing.sin_TD : shape_.sin_SD};
}

kernels::AttentionResult Attention::Attend(const Context& ctx, const at::Tensor& q_BSHD,
                                           const at::Tensor& k_BSGD, const at::Tensor& v_BSGD) {
  const ContextParallel& context = ctx.numerics().context;
  if (context.size() > 1) return ContextAttentionForward(context, q_BSHD, k_BSGD, v_BSGD);
  const std::vector<int32_t>& segments = ctx.packing().cu_seqlens;
  return segments.empty() ? kernels::AttentionForward(q_BSHD, k_BSGD, v_BSGD)
                          : kernels::AttentionForward(q_BSHD, k_BSGD, v_BSGD, segments);
}

kernels::AttentionGradient Attention::Attend(const Context& ctx, const at::Tensor& dout_BSHD,
                                             const at::Tensor& q_BSHD, const at::Tensor& k_BSGD,
                                             const at::Tensor& v_BSGD,
                                             const kernels::AttentionResult& result) {
  const ContextParallel& context = ctx.numerics().context;
  if (context.size() > 1) {
    return ContextAttentionBackward(context, dout_BSHD, q_BSHD, k_BSGD, v_BSGD, result);
  }
  const std::vector<int32_t>& segments = ctx.packing().cu_seqlens;
  return segments.empty()
             ? kernels::AttentionBackward(dout_BSHD, q_BSHD, k_BSGD, v_BSGD, result)
             : kernels::AttentionBackward(dout_BSHD, q_BSHD, k_BSGD, v_BSGD, result, segments);
}

void Attention::Invalidate() {
  qkv_.Invalidate();
  proj_.Invalidate();
}

at::Tensor Attention::Forward(Context& ctx, const at::Tensor& x_TC) {
  const int64_t B = ctx.batch(), S = ctx.positions(), D = shape_.head_dim;
  const int64_t H = shape_.groups * shape_.heads_per_group;
  const at::Tensor qkv = qkv_.Forward(ctx, ctx.tensor().Enter(x_TC));
  const at::Tensor q = at::empty({B, S, H, D}, qkv.options());
  const at::Tensor k = at::empty({B, S, shape_.groups, D}, qkv.options());
  const at::Tensor v = at::empty({B, S, shape_.groups, D}, qkv.options());
  const Rotation rotation = RotationOf(ctx);
  DispatchFloating(qkv.scalar_type(), [&]<typename T>(std::type_identity<T>) {
    kernels::RopeUnpack(rotation.shape, Data<Accumulate<T>>(rotation.cos),
                        Data<Accumulate<T>>(rotation.sin), Data<T>(qkv), Data<T>(q), Data<T>(k),
                        Data<T>(v));
  });
  const kernels::AttentionResult result = Attend(ctx, q, k, v);
  ctx.Save(q);
  ctx.Save(k);
  ctx.Save(v);
  ctx.Save(result.out_BSHD);
  ctx.Save(result.logsumexp);
  return ctx.tensor().Leave(proj_.Forward(ctx, result.out_BSHD.view({B * S, H * D})));
}

at::Tensor Attention::Backward(Context& ctx, const at::Tensor& dy_TC) {
  const int64_t B = ctx.batch(), S = ctx.positions(), D = shape_.head_dim;
  const int64_t H = shape_.groups * shape_.heads_per_group;
  const at::Tensor dout = proj_.Backward(ctx, ctx.tensor().Enter(dy_TC)).view({B, S, H, D});
  kernels::AttentionResult result;
  result.logsumexp = ctx.Restore();
  result.out_BSHD = ctx.Restore();
  const at::Tensor v = ctx.Restore();
  const at::Tensor k = ctx.Restore();
  const at::Tensor q = ctx.Restore();
  const kernels::AttentionGradient grad = Attend(ctx, dout, q, k, v, result);
  const Rotation rotation = RotationOf(ctx);
  const at::Tensor dqkv = at::empty({B * S, (H + 2 * shape_.groups) * D}, q.options());
  DispatchFloating(q.scalar_type(), [&]<typename T>(std::type_identity<T>) {
    kernels::RopePackGradient(rotation.shape, Data<Accumulate<T>>(rotation.cos),
                              Data<Accumulate<T>>(rotation.sin), Data<T>(grad.dq_BSHD),
                              Data<T>(grad.dk_BSGD), Data<T>(grad.dv_BSGD), Data<T>(dqkv));
  });
  return ctx.tensor().Leave(qkv_.Backward(ctx, dqkv));
}

}  // namespace muster::layers
