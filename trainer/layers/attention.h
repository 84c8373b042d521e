#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/kernels/attention.h"
#include "trainer/kernels/rope.h"
#include "trainer/layers/context.h"
#include "trainer/layers/linear.h"

namespace muster::layers {

// Sizes of this rank's part of the attention and the angles of its positions; shared by all layers.
struct AttentionShape {
  int64_t groups;           // KV heads
  int64_t heads_per_group;  // query heads for each
  int64_t head_dim;
  at::Tensor cos_SD, sin_SD;  // [max positions, head_dim / 2], the compute type's accumulate type
};

// Grouped-query self attention with rotary positions: qkv projection, rotation, causal attention
// (within the context's segments), output projection. linear_qkv's rows are, for each group, its
// query heads, its key head, its value head.
class Attention {
 public:
  // `shape` must outlive the layer.
  Attention(const AttentionShape* shape, Linear qkv, Linear proj)
      : shape_(*shape), qkv_(std::move(qkv)), proj_(std::move(proj)) {}

  void Invalidate();
  at::Tensor Forward(Context& ctx, const at::Tensor& x_TC);
  at::Tensor Backward(Context& ctx, const at::Tensor& dy_TC);

 private:
  // What the rotation needs; tokens with angles of their own are one row.
  struct Rotation {
    kernels::QkvShape shape;
    at::Tensor cos, sin;
  };
  Rotation RotationOf(const Context& ctx) const;
  // Attention itself: alone, within segments, or over context-parallel ranks.
  static kernels::AttentionResult Attend(const Context& ctx, const at::Tensor& q_BSHD,
                                         const at::Tensor& k_BSGD, const at::Tensor& v_BSGD);
  static kernels::AttentionGradient Attend(const Context& ctx, const at::Tensor& dout_BSHD,
                                           const at::Tensor& q_BSHD, const at::Tensor& k_BSGD,
                                           const at::Tensor& v_BSGD,
                                           const kernels::AttentionResult& result);

  const AttentionShape& shape_;
  Linear qkv_;
  Linear proj_;
};

}  // namespace muster::layers
