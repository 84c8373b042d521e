#include "trainer/layers/embedding.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "trainer/kernels/embedding.h"
#include "trainer/tensor/dtype.h"

namespace muster::layers {

at::Tensor Embedding::Forward(Context& ctx, const at::Tensor& tokens_BS) {
  const at::Tensor table = weight_->Get(ctx);
  const at::Tensor y_TC = at::empty({tokens_BS.numel(), table.size(1)}, table.options());
  DispatchFloating(table.scalar_type(), [&]<typename T>(std::type_identity<T>) {
    kernels::EmbeddingForward(y_TC.size(0), y_TC.size(1), table.size(0), Data<int64_t>(tokens_BS),
                              Data<T>(table), Data<T>(y_TC));
  });
  ctx.Save(tokens_BS);
  return y_TC;
}

void Embedding::Backward(Context& ctx, const at::Tensor& dy_TC) {
  const at::Tensor tokens_BS = ctx.Restore();
  const at::ScalarType sum = AccumulateType(dy_TC.scalar_type());
  // A bf16 main gradient is rounded once per micro-batch, not once per token.
  const bool direct = weight_->gradient().scalar_type() == sum;
  const at::Tensor gradient =
      direct ? weight_->gradient() : at::zeros(weight_->gradient().sizes(), sum);
  DispatchFloating(dy_TC.scalar_type(), [&]<typename T>(std::type_identity<T>) {
    kernels::EmbeddingBackward(dy_TC.size(0), dy_TC.size(1), gradient.size(0),
                               Data<int64_t>(tokens_BS), Data<T>(dy_TC),
                               Data<Accumulate<T>>(gradient));
  });
  if (!direct) weight_->AddGradient(gradient);
}

}  // namespace muster::layers
