#include "trainer/kernels/cuda/embedding.h"

#include "trainer/kernels/cuda/vectors.cuh"

namespace muster::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// One block for each row.
template <bool kWhole>
__global__ void __launch_bounds__(kThreads)
    ForwardKernel(int64_t columns, const int64_t* tokens, const Bfloat16* table, Bfloat16* y) {
  const Bfloat16* const from = table + tokens[blockIdx.x] * columns;
  Bfloat16* const to = y + blockIdx.x * columns;
  for (int64_t column = threadIdx.x * kEight; column < columns; column += kThreads * kEight) {
    const int64_t inside = columns - column;
    StoreEight<kWhole>(to + column, LoadEight<kWhole>(from + column, inside), inside);
  }
}

// One block for each token that occurs.
template <bool kWhole>
__global__ void __launch_bounds__(kThreads)
    BackwardKernel(int64_t columns, const int32_t* tokens, const int32_t* starts,
                   const int32_t* positions, const Bfloat16* dy, float* dtable) {
  const int32_t first = starts[blockIdx.x], end = starts[blockIdx.x + 1];
  float* const to = dtable + tokens[blockIdx.x] * columns;
  for (int64_t column = threadIdx.x * kEight; column < columns; column += kThreads * kEight) {
    const int64_t inside = columns - column;
    float sums[kEight] = {};
    for (int32_t i = first; i < end; ++i) {
      const auto row = LoadEight<kWhole>(dy + positions[i] * columns + column, inside);
#pragma unroll
      for (int j = 0; j < kEight; ++j) sums[j] += ToFloat(row.element[j]);
    }
    auto total = LoadEight<kWhole>(to + column, inside);
#pragma unroll
    for (int j = 0; j < kEight; ++j) total.element[j] += sums[j];
    StoreEight<kWhole>(to + column, total, inside);
  }
}

}  // namespace

void EmbeddingForward(int64_t rows, int64_t columns, const int64_t* tokens, const Bfloat16* table,
                      Bfloat16* y, cudaStream_t stream) {
  if (rows == 0) return;
  const bool whole = columns % kEight == 0 && Aligned(table, 16) && Aligned(y, 16);
  auto* const kernel = whole ? ForwardKernel<true> : ForwardKernel<false>;
  kernel<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(columns, tokens, table, y);
}

void EmbeddingGroupsBackward(int64_t groups, int64_t columns, const int32_t* tokens,
                             const int32_t* starts, const int32_t* positions, const Bfloat16* dy,
                             float* dtable, cudaStream_t stream) {
  if (groups == 0) return;
  const bool whole = columns % kEight == 0 && Aligned(dy, 16) && Aligned(dtable, 16);
  auto* const kernel = whole ? BackwardKernel<true> : BackwardKernel<false>;
  kernel<<<static_cast<unsigned>(groups), kThreads, 0, stream>>>(columns, tokens, starts, positions,
                                                                 dy, dtable);
}

}  // namespace muster::kernels::cuda
