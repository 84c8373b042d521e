#pragma once

#include <ATen/core/Tensor.h>

// Causal attention with fewer KV heads (G) than query heads (H); scores are scaled by 1 / sqrt(D).
// All tensors of heads are contiguous [batch, position, head, D].

namespace muster::kernels {

struct AttentionResult {
  at::Tensor out_BSHD;
  at::Tensor logsumexp;  // in the kernel's own layout
};

struct AttentionGradient {
  at::Tensor dq_BSHD, dk_BSGD, dv_BSGD;
};

AttentionResult AttentionForward(const at::Tensor& q_BSHD, const at::Tensor& k_BSGD,
                                 const at::Tensor& v_BSGD);

AttentionGradient AttentionBackward(const at::Tensor& dout_BSHD, const at::Tensor& q_BSHD,
                                    const at::Tensor& k_BSGD, const at::Tensor& v_BSGD,
                                    const AttentionResult& result);

}  // namespace muster::kernels
