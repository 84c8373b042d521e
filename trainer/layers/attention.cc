#include "trainer/layers/attention.h"

#include <ATen/ops/empty.h>

#include "trainer/kernels/attention.h"
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

void Attention::Invalidate() {
  qkv_.Invalidate();
  proj_.Invalidate();
}

at::Tensor Attention::Forward(Context& ctx, const at::Tensor& x_TC) {
  const int64_t B = ctx.batch(), S = ctx.positions(), D = shape_.head_dim;
  const int64_t H = shape_.groups * shape_.heads_per_group;
  const at::Tensor qkv = qkv_.Forward(ctx, x_TC);
  const at::Tensor q = at::empty({B, S, H, D}, qkv.options());
  const at::Tensor k = at::empty({B, S, shape_.groups, D}, qkv.options());
  const at::Tensor v = at::empty({B, S, shape_.groups, D}, qkv.options());
  const Rotation rotation = RotationOf(ctx);
  DispatchFloating(qkv.scalar_type(), [&]<typename T>(std::type_identity<T>) {
    kernels::RopeUnpack(rotation.shape, Data<Accumulate<T>>(rotation.cos),
                        Data<Accumulate<T>>(rotation.sin), Data<T>(qkv), Data<T>(q), Data<T>(k),
                        Data<T>(v));
  });
  const std::vector<int32_t>& segments = ctx.packing().cu_seqlens;
  const kernels::AttentionResult result = segments.empty()
                                              ? kernels::AttentionForward(q, k, v)
                                              : kernels::AttentionForward(q, k, v, segments);
  ctx.Save(q);
  ctx.Save(k);
  ctx.Save(v);
  ctx.Save(result.out_BSHD);
  ctx.Save(result.logsumexp);
  return proj_.Forward(ctx, result.out_BSHD.view({B * S, H * D}));
}

at::Tensor Attention::Backward(Context& ctx, const at::Tensor& dy_TC) {
  const int64_t B = ctx.batch(), S = ctx.positions(), D = shape_.head_dim;
  const int64_t H = shape_.groups * shape_.heads_per_group;
  const at::Tensor dout = proj_.Backward(ctx, dy_TC).view({B, S, H, D});
  kernels::AttentionResult result;
  result.logsumexp = ctx.Restore();
  result.out_BSHD = ctx.Restore();
  const at::Tensor v = ctx.Restore();
  const at::Tensor k = ctx.Restore();
  const at::Tensor q = ctx.Restore();
  const std::vector<int32_t>& segments = ctx.packing().cu_seqlens;
  const kernels::AttentionGradient grad =
      segments.empty() ? kernels::AttentionBackward(dout, q, k, v, result)
                       : kernels::AttentionBackward(dout, q, k, v, result, segments);
  const Rotation rotation = RotationOf(ctx);
  const at::Tensor dqkv = at::empty({B * S, (H + 2 * shape_.groups) * D}, q.options());
  DispatchFloating(q.scalar_type(), [&]<typename T>(std::type_identity<T>) {
    kernels::RopePackGradient(rotation.shape, Data<Accumulate<T>>(rotation.cos),
                              Data<Accumulate<T>>(rotation.sin), Data<T>(grad.dq_BSHD),
                              Data<T>(grad.dk_BSGD), Data<T>(grad.dv_BSGD), Data<T>(dqkv));
  });
  return qkv_.Backward(ctx, dqkv);
}

}  // namespace muster::layers
