#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

// Attention with fewer KV heads (G) than query heads (H); scores are scaled by 1 / sqrt(D). All
// tensors of heads are [batch, position, head, D] with contiguous heads; results are contiguous.
// `causal`: keys and queries are of the same positions, and a query sees no later key; else every
// query sees every key.

namespace muster::kernels {

struct AttentionResult {
  at::Tensor out_BSHD;
  at::Tensor logsumexp;  // of the scores [batch, head, position], stored as [batch, position, head]
};

struct AttentionGradient {
  at::Tensor dq_BSHD, dk_BSGD, dv_BSGD;
};

AttentionResult AttentionForward(const at::Tensor& q_BSHD, const at::Tensor& k_BSGD,
                                 const at::Tensor& v_BSGD, bool causal = true);

AttentionGradient AttentionBackward(const at::Tensor& dout_BSHD, const at::Tensor& q_BSHD,
                                    const at::Tensor& k_BSGD, const at::Tensor& v_BSGD,
                                    const AttentionResult& result, bool causal = true);

// Causal, within segments: the B * S tokens in a row, cut at `cu_seqlens` (0, where each next
// segment begins, B * S); a token attends to those before it in its own segment. Each segment is
// computed by itself, so the result is that of its tokens alone, bit for bit.
AttentionResult AttentionForward(const at::Tensor& q_BSHD, const at::Tensor& k_BSGD,
                                 const at::Tensor& v_BSGD, const std::vector<int32_t>& cu_seqlens);

AttentionGradient AttentionBackward(const at::Tensor& dout_BSHD, const at::Tensor& q_BSHD,
                                    const at::Tensor& k_BSGD, const at::Tensor& v_BSGD,
                                    const AttentionResult& result,
                                    const std::vector<int32_t>& cu_seqlens);

}  // namespace muster::kernels
