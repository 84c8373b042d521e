#include "trainer/kernels/cuda/rmsnorm_forward.h"

#include "trainer/kernels/cuda/vectors.cuh"

namespace muster::kernels::cuda {
namespace {

constexpr int kThreads = 512, kWarps = kThreads / 32;
// Vectors of a row that a thread keeps in registers; what is beyond is read again.
constexpr int kKept = 2;

struct Operands {
  const Bfloat16 *x, *weight;
  Bfloat16* y;
  float* rstd;
  int64_t columns;
  float epsilon, offset;
};

// One block for each row.
template <bool kWhole>
__global__ void __launch_bounds__(kThreads) NormKernel(Operands of) {
  __shared__ float of_warps[kWarps];
  const int64_t row = blockIdx.x, origin = row * of.columns;
  constexpr int kStep = kThreads * kEight;
  Eight<Bfloat16> kept[kKept] = {};
  float squares = 0;
#pragma unroll
  for (int v = 0; v < kKept; ++v) {
    const int64_t column = threadIdx.x * kEight + v * kStep;
    if (column < of.columns)
      kept[v] = LoadEight<kWhole>(of.x + origin + column, of.columns - column);
#pragma unroll
    for (int j = 0; j < kEight; ++j) {
      squares += ToFloat(kept[v].element[j]) * ToFloat(kept[v].element[j]);
    }
  }
  for (int64_t column = threadIdx.x * kEight + kKept * kStep; column < of.columns;
       column += kStep) {
    const auto x = LoadEight<kWhole>(of.x + origin + column, of.columns - column);
#pragma unroll
    for (int j = 0; j < kEight; ++j) squares += ToFloat(x.element[j]) * ToFloat(x.element[j]);
  }
  squares = WarpSum(squares);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = squares;
  __syncthreads();
  squares = 0;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) squares += of_warps[warp];
  const float scale = 1 / sqrtf(squares / static_cast<float>(of.columns) + of.epsilon);
  if (threadIdx.x == 0) of.rstd[row] = scale;

  const auto finish = [&](const Eight<Bfloat16>& x, int64_t column) {
    const int64_t inside = of.columns - column;
    const auto weight = LoadEight<kWhole>(of.weight + column, inside);
    Eight<Bfloat16> y;
#pragma unroll
    for (int j = 0; j < kEight; ++j) {
      y.element[j] = FromFloat<Bfloat16>(ToFloat(x.element[j]) * scale *
                                         (of.offset + ToFloat(weight.element[j])));
    }
    StoreEight<kWhole>(of.y + origin + column, y, inside);
  };
#pragma unroll
  for (int v = 0; v < kKept; ++v) {
    const int64_t column = threadIdx.x * kEight + v * kStep;
    if (column < of.columns) finish(kept[v], column);
  }
  for (int64_t column = threadIdx.x * kEight + kKept * kStep; column < of.columns;
       column += kStep) {
    finish(LoadEight<kWhole>(of.x + origin + column, of.columns - column), column);
  }
}

}  // namespace

void RmsNormForward(const RmsNormShape& shape, const Bfloat16* x, const Bfloat16* weight,
                    Bfloat16* y, float* rstd, cudaStream_t stream) {
  if (shape.rows == 0) return;
  const Operands of{x,
                    weight,
                    y,
                    rstd,
                    shape.columns,
                    static_cast<float>(shape.epsilon),
                    static_cast<float>(shape.offset)};
  const bool whole =
      shape.columns % kEight == 0 && Aligned(x, 16) && Aligned(weight, 16) && Aligned(y, 16);
  auto* const kernel = whole ? NormKernel<true> : NormKernel<false>;
  kernel<<<static_cast<unsigned>(shape.rows), kThreads, 0, stream>>>(of);
}

}  // namespace muster::kernels::cuda
