#include "trainer/kernels/attention.h"

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>

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

// Token rows begin .. end of a tensor of heads, as a batch of one.
at::Tensor Rows(const at::Tensor& heads, int64_t begin, int64_t end) {
  return heads.view({1, -1, heads.size(2), heads.size(3)}).narrow(1, begin, end - begin);
}

template <typename Use>
void ForEachSegment(const std::vector<int32_t>& cu_seqlens, Use use) {
  for (size_t i = 0; i + 1 < cu_seqlens.size(); ++i) use(cu_seqlens[i], cu_seqlens[i + 1]);
}

}  // namespace

AttentionResult AttentionForward(const at::Tensor& q_BSHD, const at::Tensor& k_BSGD,
                                 const at::Tensor& v_BSGD, bool causal) {
  auto [out, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
      HeadsFirst(q_BSHD), HeadsFirst(k_BSGD), HeadsFirst(v_BSGD), /*dropout_p=*/0.0, causal);
  return {PositionsFirst(out), logsumexp};
}

AttentionGradient AttentionBackward(const at::Tensor& dout_BSHD, const at::Tensor& q_BSHD,
                                    const at::Tensor& k_BSGD, const at::Tensor& v_BSGD,
                                    const AttentionResult& result, bool causal) {
  auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      HeadsFirst(dout_BSHD), HeadsFirst(q_BSHD), HeadsFirst(k_BSGD), HeadsFirst(v_BSGD),
      HeadsFirst(result.out_BSHD), result.logsumexp, /*dropout_p=*/0.0, causal);
  return {PositionsFirst(dq), PositionsFirst(dk), PositionsFirst(dv)};
}

AttentionResult AttentionForward(const at::Tensor& q_BSHD, const at::Tensor& k_BSGD,
                                 const at::Tensor& v_BSGD, const std::vector<int32_t>& cu_seqlens) {
  const at::Tensor out_BSHD = at::empty_like(q_BSHD);
  std::vector<at::Tensor> logsumexps;
  ForEachSegment(cu_seqlens, [&](int64_t begin, int64_t end) {
    const AttentionResult part = AttentionForward(
        Rows(q_BSHD, begin, end), Rows(k_BSGD, begin, end), Rows(v_BSGD, begin, end));
    Rows(out_BSHD, begin, end).copy_(part.out_BSHD);
    logsumexps.push_back(part.logsumexp.transpose(1, 2).reshape({-1}));  // LibTorch's own order
  });
  return {out_BSHD, at::cat(logsumexps)};
}

AttentionGradient AttentionBackward(const at::Tensor& dout_BSHD, const at::Tensor& q_BSHD,
                                    const at::Tensor& k_BSGD, const at::Tensor& v_BSGD,
                                    const AttentionResult& result,
                                    const std::vector<int32_t>& cu_seqlens) {
  const int64_t heads = q_BSHD.size(2);
  AttentionGradient gradient = {at::empty_like(q_BSHD), at::empty_like(k_BSGD),
                                at::empty_like(v_BSGD)};
  ForEachSegment(cu_seqlens, [&](int64_t begin, int64_t end) {
    AttentionResult part;
    part.out_BSHD = Rows(result.out_BSHD, begin, end);
    part.logsumexp = result.logsumexp.narrow(0, begin * heads, (end - begin) * heads)
                         .view({1, end - begin, heads})
                         .transpose(1, 2);
    const AttentionGradient of_part =
        AttentionBackward(Rows(dout_BSHD, begin, end), Rows(q_BSHD, begin, end),
                          Rows(k_BSGD, begin, end), Rows(v_BSGD, begin, end), part);
    Rows(gradient.dq_BSHD, begin, end).copy_(of_part.dq_BSHD);
    Rows(gradient.dk_BSGD, begin, end).copy_(of_part.dk_BSGD);
    Rows(gradient.dv_BSGD, begin, end).copy_(of_part.dv_BSGD);
  });
  return gradient;
}

}  // namespace muster::kernels
