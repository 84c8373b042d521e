#include <cfloat>

#include "trainer/kernels/cuda/cross_entropy.h"
#include "trainer/kernels/cuda/vectors.cuh"

namespace muster::kernels::cuda {
namespace {

constexpr int kThreads = 1024, kWarps = kThreads / 32;
constexpr int kLoads = 4;  // vectors in flight

// The largest of some numbers and the sum of exp(number - largest).
struct Softmax {
  float largest = -FLT_MAX, sum = 0;

  __device__ void Add(const Softmax& other) {
    const float larger = fmaxf(largest, other.largest);
    sum = sum * __expf(largest - larger) + other.sum * __expf(other.largest - larger);
    largest = larger;
  }
};

template <bool kWhole>
__device__ Softmax OfRow(const Bfloat16* row, int64_t vocab) {
  Softmax mine;
  for (int64_t start = threadIdx.x * kEight; start < vocab; start += kThreads * kEight * kLoads) {
    Eight<Bfloat16> values[kLoads];
#pragma unroll
    for (int v = 0; v < kLoads; ++v) {
      const int64_t at = start + v * kThreads * kEight;
      if (at < vocab) values[v] = LoadEight<kWhole>(row + at, vocab - at);
    }
#pragma unroll
    for (int v = 0; v < kLoads; ++v) {
      const int64_t at = start + v * kThreads * kEight;
      if (at >= vocab) break;
      Softmax eight;
#pragma unroll
      for (int j = 0; j < kEight; ++j) {
        if (kWhole || at + j < vocab) {
          eight.largest = fmaxf(eight.largest, ToFloat(values[v].element[j]));
        }
      }
#pragma unroll
      for (int j = 0; j < kEight; ++j) {
        if (kWhole || at + j < vocab) {
          eight.sum += __expf(ToFloat(values[v].element[j]) - eight.largest);
        }
      }
      mine.Add(eight);
    }
  }
  return mine;
}

// Of a warp, the same in each lane and in each run.
__device__ Softmax OfWarp(Softmax mine) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    Softmax other;
    other.largest = __shfl_xor_sync(0xffffffff, mine.largest, offset);
    other.sum = __shfl_xor_sync(0xffffffff, mine.sum, offset);
    mine.Add(other);
  }
  return mine;
}

// Of the whole block of 32 warps.
__device__ Softmax OfBlock(Softmax mine) {
  __shared__ Softmax of_warps[kWarps];
  mine = OfWarp(mine);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = mine;
  __syncthreads();
  return OfWarp(of_warps[threadIdx.x % kWarps]);
}

// One block for each row; the second pass finds most of the row in the L2 cache.
template <bool kWhole, bool kGradient>
__global__ void __launch_bounds__(kThreads)
    RowKernel(int64_t vocab, Bfloat16* logits, const int64_t* labels, const float* mask,
              float* losses) {
  Bfloat16* const row = logits + blockIdx.x * vocab;
  const float weight = mask[blockIdx.x];
  if (weight == 0) {
    if (threadIdx.x == 0) losses[blockIdx.x] = 0;
    if constexpr (kGradient) {
      for (int64_t at = threadIdx.x * kEight; at < vocab; at += kThreads * kEight) {
        StoreEight<kWhole>(row + at, Eight<Bfloat16>{}, vocab - at);
      }
    }
    return;
  }
  const int64_t label = labels[blockIdx.x];
  const float target = ToFloat(row[label]);
  const Softmax of_row = OfBlock(OfRow<kWhole>(row, vocab));  // waits until all have read target
  if (threadIdx.x == 0) losses[blockIdx.x] = logf(of_row.sum) - (target - of_row.largest);
  if constexpr (kGradient) {
    const float factor = weight / of_row.sum;
    for (int64_t at = threadIdx.x * kEight; at < vocab; at += kThreads * kEight) {
      auto values = LoadEight<kWhole>(row + at, vocab - at);
#pragma unroll
      for (int j = 0; j < kEight; ++j) {
        float gradient = __expf(ToFloat(values.element[j]) - of_row.largest) * factor;
        if (at + j == label) gradient -= weight;
        values.element[j] = FromFloat<Bfloat16>(gradient);
      }
      StoreEight<kWhole>(row + at, values, vocab - at);
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    SumKernel(int64_t rows, const float* losses, const float* mask, double* sums) {
  __shared__ double parts[2][kWarps];
  double loss = 0, tokens = 0;
  for (int64_t row = threadIdx.x; row < rows; row += kThreads) {
    loss += static_cast<double>(mask[row]) * static_cast<double>(losses[row]);
    tokens += static_cast<double>(mask[row]);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    loss += __shfl_xor_sync(0xffffffff, loss, offset);
    tokens += __shfl_xor_sync(0xffffffff, tokens, offset);
  }
  if (threadIdx.x % 32 == 0) {
    parts[0][threadIdx.x / 32] = loss;
    parts[1][threadIdx.x / 32] = tokens;
  }
  __syncthreads();
  if (threadIdx.x >= 2) return;
  double sum = 0;
  for (int warp = 0; warp < kWarps; ++warp) sum += parts[threadIdx.x][warp];
  sums[threadIdx.x] += sum;
}

}  // namespace

void CrossEntropy(int64_t rows, int64_t vocab, Bfloat16* logits, const int64_t* labels,
                  const float* mask, bool gradient, float* losses, cudaStream_t stream) {
  if (rows == 0) return;
  const bool whole = vocab % kEight == 0 && Aligned(logits, 16);
  auto* const with = whole ? RowKernel<true, true> : RowKernel<false, true>;
  auto* const without = whole ? RowKernel<true, false> : RowKernel<false, false>;
  (gradient ? with : without)<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(
      vocab, logits, labels, mask, losses);
}

void AddLosses(int64_t rows, const float* losses, const float* mask, double* sums,
               cudaStream_t stream) {
  SumKernel<<<1, kThreads, 0, stream>>>(rows, losses, mask, sums);
}

}  // namespace muster::kernels::cuda
