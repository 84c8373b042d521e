#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trainer/kernels/cross_entropy.h"

// Masked cross entropy on the GPU, with device pointers and a stream. Launch errors are left for
// cudaGetLastError.

namespace muster::kernels::cuda {

// The loss of each row, unmasked rows alone (0 for the others); with `gradient` overwrites logits
// as kernels::CrossEntropy does. Labels of unmasked rows were checked by the caller.
void CrossEntropy(int64_t rows, int64_t vocab, Bfloat16* logits, const int64_t* labels,
                  const float* mask, bool gradient, float* losses, cudaStream_t stream);

// sums[0] += the sum of mask * loss, sums[1] += the sum of the mask; in double and in a fixed
// order.
void AddLosses(int64_t rows, const float* losses, const float* mask, double* sums,
               cudaStream_t stream);

}  // namespace muster::kernels::cuda
