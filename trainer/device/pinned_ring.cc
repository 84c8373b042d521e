#include "trainer/device/pinned_ring.h"

#include <algorithm>
#include <cstring>

#include "trainer/tensor/cuda_check.h"

namespace muster::device {
namespace {

constexpr int64_t kStep = 64;

}  // namespace

PinnedRing::PinnedRing(cudaStream_t stream) : stream_(stream) {
  void* memory = nullptr;
  MUSTER_CUDA_CHECK(cudaMallocHost(&memory, 2 * kHalfBytes));
  memory_ = static_cast<std::byte*>(memory);
  for (cudaEvent_t& event : done_) {
    MUSTER_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }
}

PinnedRing::~PinnedRing() {
  cudaStreamSynchronize(stream_);
  for (cudaEvent_t event : done_) cudaEventDestroy(event);
  cudaFreeHost(memory_);
}

void PinnedRing::NextHalf() {
  MUSTER_CUDA_CHECK(cudaEventRecord(done_[half_], stream_));
  half_ = 1 - half_;
  used_ = 0;
  MUSTER_CUDA_CHECK(cudaEventSynchronize(done_[half_]));  // at once if it was never recorded
}

void PinnedRing::Upload(void* to, const void* from, int64_t bytes) {
  auto* target = static_cast<std::byte*>(to);
  auto* source = static_cast<const std::byte*>(from);
  while (bytes > 0) {
    if (used_ == kHalfBytes) NextHalf();
    const int64_t piece = std::min(bytes, kHalfBytes - used_);
    std::byte* const waiting = memory_ + half_ * kHalfBytes + used_;
    std::memcpy(waiting, source, static_cast<size_t>(piece));
    MUSTER_CUDA_CHECK(cudaMemcpyAsync(target, waiting, static_cast<size_t>(piece),
                                      cudaMemcpyHostToDevice, stream_));
    used_ = std::min(kHalfBytes, (used_ + piece + kStep - 1) / kStep * kStep);
    target += piece, source += piece, bytes -= piece;
  }
}

}  // namespace muster::device
