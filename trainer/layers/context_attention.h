#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/kernels/attention.h"
#include "trainer/layers/context_parallel.h"

// Causal attention over whole sequences of which every rank has its chunks: its own queries meet
// the keys and values of all ranks, one rank's after the other's. Partial results are put together
// by their sums of exponentials (online softmax), in the accumulate type. All ranks make the same
// calls.

namespace muster::layers {

kernels::AttentionResult ContextAttentionForward(const ContextParallel& context,
                                                 const at::Tensor& q_BSHD, const at::Tensor& k_BSGD,
                                                 const at::Tensor& v_BSGD);

kernels::AttentionGradient ContextAttentionBackward(
    const ContextParallel& context, const at::Tensor& dout_BSHD, const at::Tensor& q_BSHD,
    const at::Tensor& k_BSGD, const at::Tensor& v_BSGD, const kernels::AttentionResult& result);

}  // namespace muster::layers
