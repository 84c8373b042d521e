#pragma once

#include <cooperative_groups.h>

#include <algorithm>

#include "trainer/kernels/cuda/async_slots.cuh"
#include "trainer/kernels/cuda/fp8_patch.cuh"

// Device code for kernels that need a sum over each row before they can write it: a cluster of
// blocks has a tile of rows with all their columns, a warp kWarpRows x kWarpColumns of it, a thread
// a patch, which waits in its registers for the sums while its next one is on the way.

namespace muster::kernels::cuda {

constexpr int kMaxCluster = 8;  // what every device runs
constexpr int kMaxClusterWarps = 16;

// How rows are shared by clusters; `blocks` is 0 where they can't be.
struct ClusterShape {
  int blocks = 0, warps = 0;  // blocks of a cluster, warps of a block

  ClusterShape(int64_t rows, int64_t columns) {
    if (rows % kWarpRows != 0 || columns % kWarpColumns != 0) return;
    const int64_t across = columns / kWarpColumns;
    for (int64_t n = kMaxCluster; n >= 1; --n) {
      if (across % n != 0 || across / n > kMaxClusterWarps) continue;
      blocks = static_cast<int>(n);
      warps = static_cast<int>(across / n);
      return;
    }
  }
};

// Of eight numbers in each of eight neighbouring lanes: lane i gets the sum of all i-th ones.
__device__ inline float SumOfEights(const float (&x)[kEight]) {
  const int lane = threadIdx.x;
  float four[4], two[2];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float kept = lane & 4 ? x[i + 4] : x[i], given = lane & 4 ? x[i] : x[i + 4];
    four[i] = kept + __shfl_xor_sync(0xffffffff, given, 4);
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float kept = lane & 2 ? four[i + 2] : four[i], given = lane & 2 ? four[i] : four[i + 2];
    two[i] = kept + __shfl_xor_sync(0xffffffff, given, 2);
  }
  const float kept = lane & 1 ? two[1] : two[0], given = lane & 1 ? two[0] : two[1];
  return kept + __shfl_xor_sync(0xffffffff, given, 1);
}

// What a thread of such a kernel works on: tiles of kWarpRows rows, one after the other. Later ones
// come first, as in PlaceOfPatch.
class ClusterRows {
 public:
  __device__ explicit ClusterRows(int64_t rows)
      : cluster_(cooperative_groups::this_cluster()),
        blocks_(static_cast<int>(cluster_.num_blocks())),
        rank_(static_cast<int>(cluster_.block_rank())),
        step_(gridDim.x / blocks_),
        tile_(rows / kWarpRows - 1 - blockIdx.x / blocks_) {
    cluster_.sync();  // before, their shared memory may not be there
  }
  __device__ bool done() const { return tile_ < 0; }
  __device__ void Next() { tile_ -= step_; }
  __device__ int64_t tile() const { return tile_; }
  // Of this thread's patch in this tile or the next one; the row is negative past the last.
  __device__ PatchPlace At(bool next = false) const {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    return {(next ? tile_ - step_ : tile_) * kWarpRows + lane / 8 * kEight,
            (rank_ * warps + warp) * kWarpColumns + lane % 8 * kEight};
  }
  __device__ int64_t row_of_lane() const { return tile_ * kWarpRows + threadIdx.x % 32; }
  __device__ bool first_warp() const { return rank_ == 0 && threadIdx.x < 32; }

  // From the sums of each of a patch's eight rows to the sum over a whole row: lane i of each warp
  // gets row i's. In a fixed order. Once for each tile.
  __device__ float SumOverRows(const float (&of_patch)[kEight]) {
    __shared__ float of_warps[kMaxClusterWarps][kWarpRows];
    // Two, as blocks that are ahead may write the next sums while others still read these.
    __shared__ float of_blocks[2][kMaxCluster][kWarpRows];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    of_warps[warp][lane] = SumOfEights(of_patch);
    __syncthreads();
    for (int to = warp; to < blocks_; to += warps) {
      float sum = 0;
      for (int i = 0; i < warps; ++i) sum += of_warps[i][lane];
      *cluster_.map_shared_rank(&of_blocks[parity_][rank_][lane], to) = sum;
    }
    cluster_.sync();
    float sum = 0;
    for (int i = 0; i < blocks_; ++i) sum += of_blocks[parity_][i][lane];
    parity_ ^= 1;
    return sum;
  }
  // Of a number that lane i has for row i, that of row i of this thread's patch.
  __device__ static float OfPatchRow(float of_lane, int i) {
    return __shfl_sync(0xffffffff, of_lane, threadIdx.x % 32 / 8 * kEight + i);
  }

 private:
  cooperative_groups::cluster_group cluster_;
  int blocks_, rank_, parity_ = 0;
  int64_t step_, tile_;
};

// Launches as many clusters of `kernel` as the device runs at once, so that each takes one tile of
// `rows` rows after the other; equal numbers of them where that can be. Each thread has `slots`
// slots (see AsyncSlots).
template <typename... Parameters, typename... Arguments>
void LaunchClusters(void (*kernel)(Parameters...), const ClusterShape& shape, int64_t rows,
                    int slots, cudaStream_t stream, const Arguments&... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(shape.blocks), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(shape.blocks));
  config.blockDim = dim3(static_cast<unsigned>(shape.warps * 32));
  config.dynamicSmemBytes = static_cast<size_t>(slots * shape.warps * 32) * kSlotBytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(config.dynamicSmemBytes));
  int most = 0;
  cudaOccupancyMaxActiveClusters(&most, kernel, &config);
  const int64_t tiles = rows / kWarpRows, clusters = std::min<int64_t>(std::max(most, 1), tiles);
  const int64_t rounds = (tiles + clusters - 1) / clusters;
  config.gridDim = dim3(static_cast<unsigned>((tiles + rounds - 1) / rounds) *
                        static_cast<unsigned>(shape.blocks));
  cudaLaunchKernelEx(&config, kernel, arguments...);
}

}  // namespace muster::kernels::cuda
