#include "trainer/kernels/cuda/adamw_fp8.h"

#include "trainer/kernels/cuda/device.h"
#include "trainer/kernels/cuda/fp8_patch.cuh"

namespace muster::kernels::cuda {
namespace {

template <typename G, typename M>
struct State {
  const G* grad;
  float* master;
  M *exp_avg, *exp_avg_sq;
};

// A patch of the weight. The largest magnitude in it.
template <typename G, typename M, __nv_fp8_interpretation_t kFormat, bool kWhole>
__device__ float StepPatch(const AdamWRule& rule, const PatchOutput& y, const State<G, M>& state,
                           const PatchPlace& at) {
  const float grad_scale = (rule.clip != nullptr ? *rule.clip : 1.0f) *
                           (rule.inverse_tokens != nullptr ? *rule.inverse_tokens : 1.0f);
  const float scale = ScaleOf(y.out);
  float largest = 0;
  CodesOfEight codes[kEight];
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    const int64_t inside = at.row + i < y.rows ? y.columns - at.column : 0;
    const int64_t here = (at.row + i) * y.columns + at.column;
    const auto grads = LoadEight<kWhole>(state.grad + here, inside);
    auto master = LoadEight<kWhole>(state.master + here, inside);
    auto exp_avg = LoadEight<kWhole>(state.exp_avg + here, inside);
    auto exp_avg_sq = LoadEight<kWhole>(state.exp_avg_sq + here, inside);
#pragma unroll
    for (int j = 0; j < kEight; ++j) {
      const float g = ToFloat(grads.element[j]) * grad_scale;
      const float m = rule.beta1 * ToFloat(exp_avg.element[j]) + (1 - rule.beta1) * g;
      const float v = rule.beta2 * ToFloat(exp_avg_sq.element[j]) + (1 - rule.beta2) * g * g;
      const float update = (m / rule.correction1) / (sqrtf(v / rule.correction2) + rule.epsilon);
      master.element[j] -= rule.lr * (update + rule.weight_decay * master.element[j]);
      exp_avg.element[j] = FromFloat<M>(m);
      exp_avg_sq.element[j] = FromFloat<M>(v);
    }
    StoreEight<kWhole>(state.master + here, master, inside);
    StoreEight<kWhole>(state.exp_avg + here, exp_avg, inside);
    StoreEight<kWhole>(state.exp_avg_sq + here, exp_avg_sq, inside);
    codes[i] = CastEight<kFormat>(master.element, scale, largest);
  }
  StorePatch<kWhole>(y, at.row, at.column, y.columns, codes);
  return largest;
}

// What lies outside of the weight is 0 after the step too (0 / epsilon), and so not seen in amax.
template <typename G, typename M, __nv_fp8_interpretation_t kFormat, bool kAllWhole>
__global__ void __launch_bounds__(kPatchThreads, 3)
    StepKernel(AdamWRule rule, PatchOutput y, State<G, M> state, bool aligned) {
  const PatchPlace at = PlaceOfPatch(y.columns);
  const bool whole = kAllWhole || (aligned && at.IsWhole(y.rows, y.columns));
  FinishOutput(y.out, whole ? StepPatch<G, M, kFormat, true>(rule, y, state, at)
                            : StepPatch<G, M, kFormat, false>(rule, y, state, at));
}

template <typename G, typename M, __nv_fp8_interpretation_t kFormat>
auto* ChooseKernel(bool all_whole) {
  return all_whole ? StepKernel<G, M, kFormat, true> : StepKernel<G, M, kFormat, false>;
}

constexpr int kSquareThreads = 512, kSquareBlocks = 4;  // blocks of a multiprocessor

// Sum over the block, for its first thread.
__device__ double BlockSum(double x) {
  __shared__ double of_warps[kSquareThreads / 32];
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(0xffffffff, x, offset);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = x;
  __syncthreads();
  double sum = 0;
  if (threadIdx.x == 0) {
    for (const double of_warp : of_warps) sum += of_warp;
  }
  return sum;
}

// In double, whose squares of floats neither overflow nor vanish.
template <typename G, bool kWhole>
__global__ void __launch_bounds__(kSquareThreads, kSquareBlocks)
    SquaresKernel(const G* grad, int64_t count, double* partial) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kSquareThreads * kEight;
  double sum = 0;
  for (int64_t start = (static_cast<int64_t>(blockIdx.x) * kSquareThreads + threadIdx.x) * kEight;
       start < count; start += step) {
    const int64_t inside = count - start;
    const auto values = kWhole && inside >= kEight ? LoadEight<kWhole>(grad + start, inside)
                                                   : LoadEight<false>(grad + start, inside);
#pragma unroll
    for (int j = 0; j < kEight; ++j) {
      const double g = ToFloat(values.element[j]);
      sum += g * g;
    }
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kSquareThreads)
    AddPartsKernel(const double* partial, int blocks, double* total) {
  double sum = 0;
  for (int i = threadIdx.x; i < blocks; i += kSquareThreads) sum += partial[i];
  sum = BlockSum(sum);
  if (threadIdx.x == 0) *total += sum;
}

}  // namespace

template <typename G, typename M>
void AdamWFp8(const AdamWRule& rule, int64_t rows, int64_t columns, const G* grad, float* master,
              M* exp_avg, M* exp_avg_sq, const Fp8Output& weight, cudaStream_t stream) {
  const PatchOutput y(weight, rows, columns);
  const bool aligned = y.aligned && Aligned(grad, 16) && Aligned(master, 16) &&
                       Aligned(exp_avg, 16) && Aligned(exp_avg_sq, 16);
  const bool all_whole = AllWhole(rows, columns, aligned);
  auto* const kernel = weight.format == fp8::Format::kE4m3
                           ? ChooseKernel<G, M, __NV_E4M3>(all_whole)
                           : ChooseKernel<G, M, __NV_E5M2>(all_whole);
  kernel<<<PatchBlocks(rows, columns), kPatchThreads, 0, stream>>>(
      rule, y, State<G, M>{grad, master, exp_avg, exp_avg_sq}, aligned);
}

int64_t AddSquaresWorkspace() {
  return int64_t{kSquareBlocks} * Multiprocessors();
}

template <typename G>
void AddSquares(int64_t count, const G* grad, double* sum, double* workspace, cudaStream_t stream) {
  const int blocks = static_cast<int>(AddSquaresWorkspace());
  auto* const kernel = Aligned(grad, 16) ? SquaresKernel<G, true> : SquaresKernel<G, false>;
  kernel<<<static_cast<unsigned>(blocks), kSquareThreads, 0, stream>>>(grad, count, workspace);
  AddPartsKernel<<<1, kSquareThreads, 0, stream>>>(workspace, blocks, sum);
}

#define MUSTER_INSTANTIATE(G, M)                                                       \
  template void AdamWFp8(const AdamWRule&, int64_t, int64_t, const G*, float*, M*, M*, \
                         const Fp8Output&, cudaStream_t);
MUSTER_INSTANTIATE(float, float)
MUSTER_INSTANTIATE(float, Bfloat16)
MUSTER_INSTANTIATE(Bfloat16, float)
MUSTER_INSTANTIATE(Bfloat16, Bfloat16)
#undef MUSTER_INSTANTIATE
template void AddSquares(int64_t, const float*, double*, double*, cudaStream_t);
template void AddSquares(int64_t, const Bfloat16*, double*, double*, cudaStream_t);

}  // namespace muster::kernels::cuda
