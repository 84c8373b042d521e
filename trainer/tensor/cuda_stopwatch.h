#pragma once

#include <cuda_runtime_api.h>

#include "trainer/tensor/cuda_check.h"

namespace muster {

// Time on the device between two points of a stream. One thread.
class CudaStopwatch {
 public:
  CudaStopwatch() {
    MUSTER_CUDA_CHECK(cudaEventCreate(&start_));
    MUSTER_CUDA_CHECK(cudaEventCreate(&stop_));
  }
  ~CudaStopwatch() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }
  CudaStopwatch(const CudaStopwatch&) = delete;
  CudaStopwatch& operator=(const CudaStopwatch&) = delete;

  void Start(cudaStream_t stream) { MUSTER_CUDA_CHECK(cudaEventRecord(start_, stream)); }
  // Waits for the work since Start. Milliseconds.
  float Stop(cudaStream_t stream) {
    MUSTER_CUDA_CHECK(cudaEventRecord(stop_, stream));
    MUSTER_CUDA_CHECK(cudaEventSynchronize(stop_));
    float milliseconds = 0;
    MUSTER_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start_, stop_));
    return milliseconds;
  }

 private:
  cudaEvent_t start_ = nullptr;
  cudaEvent_t stop_ = nullptr;
};

}  // namespace muster
