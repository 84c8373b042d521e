#include "trainer/layers/attention.h"

#include <ATen/ops/empty.h>

#include "trainer/kernels/attention.h"
#include "trainer/tensor/dtype.h"

namespace muster::layers {

kernels::QkvShape Attention::QkvShapeOf(const Context& ctx) const {
  return {ctx.batch(), ctx.positions(), shape_.groups, shape_.heads_per_group, shape_.head_dim};
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
  DispatchFloating(qkv.scalar_type(), [&]<typename T>(std::type_identity<T>) {
    kernels::RopeUnpack(QkvShapeOf(ctx), Data<Accumulate<T>>(shape_.cos_SD),
                        Data<Accumulate<T>>(shape_.sin_SD), Data<T>(qkv), Data<T>(q), Data<T>(k),
                        Data<T>(v));
  });
  const kernels::AttentionResult result = kernels::AttentionForward(q, k, v);
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
  const kernels::AttentionGradient grad = kernels::AttentionBackward(dout, q, k, v, result);
  const at::Tensor dqkv = at::empty({B * S, (H + 2 * shape_.groups) * D}, q.options());
  DispatchFloating(q.scalar_type(), [&]<typename T>(std::type_identity<T>) {
    kernels::RopePackGradient(QkvShapeOf(ctx), Data<Accumulate<T>>(shape_.cos_SD),
                              Data<Accumulate<T>>(shape_.sin_SD), Data<T>(grad.dq_BSHD),
                              Data<T>(grad.dk_BSGD), Data<T>(grad.dv_BSGD), Data<T>(dqkv));
  });
  return qkv_.Backward(ctx, dqkv);
}

}  // namespace muster::layers
