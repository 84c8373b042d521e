#pragma once

#include <cuda_runtime_api.h>

#include "trainer/tensor/cuda_check.h"

namespace muster::kernels::cuda {

// Multiprocessors of the current device.
inline int Multiprocessors() {
  int device = 0, count = 0;
  MUSTER_CUDA_CHECK(cudaGetDevice(&device));
  MUSTER_CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

}  // namespace muster::kernels::cuda
