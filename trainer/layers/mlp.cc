#include "trainer/layers/mlp.h"

#include <ATen/ops/empty.h>

#include "trainer/kernels/swiglu.h"
#include "trainer/tensor/dtype.h"

namespace muster::layers {

void Mlp::Invalidate() {
  fc1_.Invalidate();
  fc2_.Invalidate();
}

at::Tensor Mlp::Forward(Context& ctx, const at::Tensor& x_TC) {
  const at::Tensor gate_up = fc1_.Forward(ctx, ctx.tensor().Enter(x_TC));
  const int64_t rows = gate_up.size(0), ffn = gate_up.size(1) / 2;
  const at::Tensor y_TF = at::empty({rows, ffn}, gate_up.options());
  DispatchFloating(gate_up.scalar_type(), [&]<typename T>(std::type_identity<T>) {
    kernels::SwigluForward(rows, ffn, Data<T>(gate_up), Data<T>(y_TF));
  });
  ctx.Save(gate_up);
  return ctx.tensor().Leave(fc2_.Forward(ctx, y_TF));
}

at::Tensor Mlp::Backward(Context& ctx, const at::Tensor& dy_TC) {
  const at::Tensor dy_TF = fc2_.Backward(ctx, ctx.tensor().Enter(dy_TC));
  const at::Tensor gate_up = ctx.Restore();
  DispatchFloating(gate_up.scalar_type(), [&]<typename T>(std::type_identity<T>) {
    kernels::SwigluBackward(gate_up.size(0), dy_TF.size(1), Data<T>(dy_TF), Data<T>(gate_up),
                            Data<T>(gate_up));
  });
  return ctx.tensor().Leave(fc1_.Backward(ctx, gate_up));  // now its gradient
}

}  // namespace muster::layers
