#include "trainer/layers/weight.h"

namespace muster::layers {

at::Tensor Weight::Convert(const Numerics& numerics) const {
  const at::Tensor& master = parameter_->value;
  if (numerics.round_weights_to_bf16) return master.to(at::kBFloat16).to(numerics.compute);
  return master.to(numerics.compute);
}

at::Tensor Weight::Get(const Context& ctx) {
  if (!ctx.training()) return Convert(ctx.numerics());
  if (stale_) copy_ = Convert(ctx.numerics());
  stale_ = false;
  return copy_;
}

}  // namespace muster::layers
