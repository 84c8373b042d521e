#include "trainer/layers/norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include "trainer/kernels/rmsnorm.h"
#include "trainer/tensor/dtype.h"

namespace muster::layers {

at::Tensor Norm::Forward(Context& ctx, const at::Tensor& x_TC) {
  const at::ScalarType dtype = x_TC.scalar_type();
  const at::Tensor weight = weight_->Get(ctx);
  const at::Tensor y = at::empty_like(x_TC);
  const at::Tensor rstd = at::empty({x_TC.size(0)}, AccumulateType(dtype));
  DispatchFloating(dtype, [&]<typename T>(std::type_identity<T>) {
    kernels::RmsNormForward({x_TC.size(0), x_TC.size(1), epsilon_, offset_}, Data<T>(x_TC),
                            Data<T>(weight), Data<T>(y), Data<Accumulate<T>>(rstd));
  });
  ctx.Save(x_TC);
  ctx.Save(rstd);
  return y;
}

void Norm::Backward(Context& ctx, const at::Tensor& dy_TC, at::Tensor& dx_TC) {
  const at::ScalarType dtype = dy_TC.scalar_type();
  const at::Tensor rstd = ctx.Restore();
  const at::Tensor x_TC = ctx.Restore();
  const at::Tensor weight = weight_->Get(ctx);
  const at::Tensor dweight = at::zeros({dy_TC.size(1)}, AccumulateType(dtype));
  DispatchFloating(dtype, [&]<typename T>(std::type_identity<T>) {
    kernels::RmsNormBackward({dy_TC.size(0), dy_TC.size(1), epsilon_, offset_}, Data<T>(dy_TC),
                             Data<T>(x_TC), Data<T>(weight), Data<Accumulate<T>>(rstd),
                             Data<T>(dx_TC), Data<Accumulate<T>>(dweight));
  });
  weight_->AddGradient(dweight);
}

}  // namespace muster::layers
