#include "trainer/kernels/attention.h"

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>

#include <tuple>

namespace muster::kernels {

AttentionResult AttentionForward(const at::Tensor& q_BHSD, const at::Tensor& k_BGSD,
                                 const at::Tensor& v_BGSD) {
  auto [out, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
      q_BHSD, k_BGSD, v_BGSD, /*dropout_p=*/0.0, /*is_causal=*/true);
  return {out, logsumexp};
}

AttentionGradient AttentionBackward(const at::Tensor& dout_BHSD, const at::Tensor& q_BHSD,
                                    const at::Tensor& k_BGSD, const at::Tensor& v_BGSD,
                                    const AttentionResult& result) {
  auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      dout_BHSD, q_BHSD, k_BGSD, v_BGSD, result.out_BHSD, result.logsumexp, /*dropout_p=*/0.0,
      /*is_causal=*/true);
  return {dq.contiguous(), dk.contiguous(), dv.contiguous()};
}

}  // namespace muster::kernels
