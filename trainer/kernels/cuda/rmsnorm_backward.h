#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trainer/kernels/rmsnorm.h"

namespace muster::kernels::cuda {

// Widest row that RmsNormBackward takes.
constexpr int64_t kMaxNormBackwardColumns = 16384;

// How many floats of workspace RmsNormBackward needs on the current device.
int64_t RmsNormBackwardWorkspace(int64_t columns);

// kernels::RmsNormBackward with device pointers and a stream: adds to dx and to dweight. Rows are
// read once; dweight is summed per block into `workspace` and then over the blocks, in an order
// that only the number of multiprocessors changes. Throws std::invalid_argument for rows wider than
// kMaxNormBackwardColumns; launch errors are left for cudaGetLastError.
void RmsNormBackward(const RmsNormShape& shape, const Bfloat16* dy, const Bfloat16* x,
                     const Bfloat16* weight, const float* rstd, Bfloat16* dx, float* dweight,
                     float* workspace, cudaStream_t stream);

// sums[columns] += the sum over the rows of x [rows, columns], in a fixed order.
void AddColumnSums(int64_t rows, int64_t columns, const float* x, float* sums, cudaStream_t stream);

}  // namespace muster::kernels::cuda
