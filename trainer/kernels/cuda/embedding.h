#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trainer/kernels/token_groups.h"

// The word embedding on the GPU, with device pointers and a stream. Tokens were checked by
// GroupTokens. Launch errors are left for cudaGetLastError.

namespace muster::kernels::cuda {

// As trainer/kernels/embedding.h.
void EmbeddingForward(int64_t rows, int64_t columns, const int64_t* tokens, const Bfloat16* table,
                      Bfloat16* y, cudaStream_t stream);

// As trainer/kernels/token_groups.h, with the same sums to the bit.
void EmbeddingGroupsBackward(int64_t groups, int64_t columns, const int32_t* tokens,
                             const int32_t* starts, const int32_t* positions, const Bfloat16* dy,
                             float* dtable, cudaStream_t stream);

}  // namespace muster::kernels::cuda
