#include "trainer/layers/block.h"

namespace muster::layers {

void Block::Invalidate() {
  attention_.Invalidate();
  mlp_.Invalidate();
}

at::Tensor Block::Forward(Context& ctx, const at::Tensor& x_TC) {
  const at::Tensor h = attention_.Forward(ctx, attention_norm_.Forward(ctx, x_TC)).add_(x_TC);
  return mlp_.Forward(ctx, mlp_norm_.Forward(ctx, h)).add_(h);
}

void Block::Backward(Context& ctx, at::Tensor& dy_TC) {
  mlp_norm_.Backward(ctx, mlp_.Backward(ctx, dy_TC), dy_TC);
  attention_norm_.Backward(ctx, attention_.Backward(ctx, dy_TC), dy_TC);
}

}  // namespace muster::layers
