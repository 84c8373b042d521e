#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/kernels/cross_entropy.h"
#include "trainer/layers/tensor_parallel.h"

namespace muster::layers {

// Masked cross entropy (kernels/cross_entropy.h) of [T, V] logits, of which tensor-parallel ranks
// have V / size consecutive columns each. `labels` (int64) and `mask` (fp32) are contiguous, T of
// each.
kernels::CrossEntropySum CrossEntropy(const TensorParallel& tensor, const at::Tensor& logits_TV,
                                      const at::Tensor& labels_T, const at::Tensor& mask_T,
                                      bool gradient);

}  // namespace muster::layers
