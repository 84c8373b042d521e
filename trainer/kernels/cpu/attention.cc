#include "trainer/kernels/attention.h"

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>

#include <tuple>

namespace muster::kernels {
namespace {

// LibTorch wants [batch, head, position, D] in any strides, and answers in the strides of q: no
// copy either way.
at::Tensor HeadsFirst(const at::Tensor& tensor) {
  return tensor.transpose(1, 2);
}
at::Tensor PositionsFirst(const at::Tensor& tensor) {
  return tensor.transpose(1, 2).contiguous();
}

}  // namespace

AttentionResult AttentionForward(const at::Tensor& q_BSHD, const at::Tensor& k_BSGD,
                                 const at::Tensor& v_BSGD) {
  auto [out, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
      HeadsFirst(q_BSHD), HeadsFirst(k_BSGD), HeadsFirst(v_BSGD), /*dropout_p=*/0.0,
      /*is_causal=*/true);
  return {PositionsFirst(out), logsumexp};
}

AttentionGradient AttentionBackward(const at::Tensor& dout_BSHD, const at::Tensor& q_BSHD,
                                    const at::Tensor& k_BSGD, const at::Tensor& v_BSGD,
                                    const AttentionResult& result) {
  auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      HeadsFirst(dout_BSHD), HeadsFirst(q_BSHD), HeadsFirst(k_BSGD), HeadsFirst(v_BSGD),
      HeadsFirst(result.out_BSHD), result.logsumexp, /*dropout_p=*/0.0, /*is_causal=*/true);
  return {PositionsFirst(dq), PositionsFirst(dk), PositionsFirst(dv)};
}

}  // namespace muster::kernels
