#pragma once

#include <cuda_runtime_api.h>

#include "trainer/kernels/adamw_fp8.h"

// AdamW into FP8 and the gradient norm on the GPU: as trainer/kernels/adamw_fp8.h, with device
// pointers and a stream. Launch errors are left for cudaGetLastError.

namespace muster::kernels::cuda {

// In one pass.
template <typename G, typename M>
void AdamWFp8(const AdamWRule& rule, int64_t rows, int64_t columns, const G* grad, float* master,
              M* exp_avg, M* exp_avg_sq, const Fp8Output& weight, cudaStream_t stream);

// How many doubles of workspace AddSquares needs on the current device.
int64_t AddSquaresWorkspace();

// Summed per block and then over the blocks, in an order that only the number of multiprocessors
// changes.
template <typename G>
void AddSquares(int64_t count, const G* grad, double* sum, double* workspace, cudaStream_t stream);

}  // namespace muster::kernels::cuda
