#include "trainer/kernels/cuda/initial_weights.h"

#include "trainer/model/init.h"

namespace muster::kernels::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    FillKernel(uint64_t key, double std_dev, int64_t first_index, int64_t count, float* out) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at < count) {
    out[at] = static_cast<float>(std_dev * model::InitialNormal(key, first_index + at));
  }
}

}  // namespace

void FillInitial(uint64_t key, double std_dev, int64_t first_index, int64_t count, float* out,
                 cudaStream_t stream) {
  if (count == 0) return;
  FillKernel<<<static_cast<unsigned>((count + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      key, std_dev, first_index, count, out);
}

}  // namespace muster::kernels::cuda
