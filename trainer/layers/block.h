#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

#include "trainer/layers/attention.h"
#include "trainer/layers/context.h"
#include "trainer/layers/mlp.h"
#include "trainer/layers/norm.h"

namespace muster::layers {

// One transformer layer: h = x + attention(norm(x)); y = h + mlp(norm(h)).
class Block {
 public:
  Block(Norm attention_norm, Attention attention, Norm mlp_norm, Mlp mlp)
      : attention_norm_(std::move(attention_norm)),
        attention_(std::move(attention)),
        mlp_norm_(std::move(mlp_norm)),
        mlp_(std::move(mlp)) {}

  void Invalidate();
  at::Tensor Forward(Context& ctx, const at::Tensor& x_TC);
  // Turns dy into the gradient of x, in place.
  void Backward(Context& ctx, at::Tensor& dy_TC);

 private:
  Norm attention_norm_;
  Attention attention_;
  Norm mlp_norm_;
  Mlp mlp_;
};

}  // namespace muster::layers
