#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace muster::device {

// Uploads through page-locked memory, so that the host need not wait for the stream: a copy from
// ordinary memory would. Two halves, each reused when its copies are done. One thread; throws
// CudaError.
class PinnedRing {
 public:
  // `stream` must outlive the ring.
  explicit PinnedRing(cudaStream_t stream);
  ~PinnedRing();
  PinnedRing(const PinnedRing&) = delete;
  PinnedRing& operator=(const PinnedRing&) = delete;

  // Enqueues the copy; `from` is free again on return.
  void Upload(void* to, const void* from, int64_t bytes);

 private:
  static constexpr int64_t kHalfBytes = int64_t{16} << 20;

  void NextHalf();

  cudaStream_t stream_;
  std::byte* memory_ = nullptr;
  cudaEvent_t done_[2] = {};
  int half_ = 0;
  int64_t used_ = 0;
};

}  // namespace muster::device
