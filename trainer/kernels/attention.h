#pragma once

#include <ATen/core/Tensor.h>

// Causal attention with fewer KV heads than query heads; scores are scaled by 1 / sqrt(D).

namespace muster::kernels {

struct AttentionResult {
  at::Tensor out_BHSD;  // strided so that [B, S, H, D] is contiguous
  at::Tensor logsumexp;
};

struct AttentionGradient {
  at::Tensor dq_BHSD, dk_BGSD, dv_BGSD;  // contiguous
};

AttentionResult AttentionForward(const at::Tensor& q_BHSD, const at::Tensor& k_BGSD,
                                 const at::Tensor& v_BGSD);

AttentionGradient AttentionBackward(const at::Tensor& dout_BHSD, const at::Tensor& q_BHSD,
                                    const at::Tensor& k_BGSD, const at::Tensor& v_BGSD,
                                    const AttentionResult& result);

}  // namespace muster::kernels
