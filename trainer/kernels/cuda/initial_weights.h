#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace muster::kernels::cuda {

// The numbers of model::FillNormal (trainer/model/init.h) for the tensor whose key is `key`, on the
// GPU: equal to the last bit or one beside it, since logarithm and cosine may differ in theirs.
// Launch errors are left for cudaGetLastError.
void FillInitial(uint64_t key, double std_dev, int64_t first_index, int64_t count, float* out,
                 cudaStream_t stream);

}  // namespace muster::kernels::cuda
