#pragma once

#include <memory>
#include <string>

#include "trainer/device/ops.h"

namespace muster::device {

struct CudaOptions {
  int ordinal = 0;             // of the GPU
  bool graphs = true;          // replay CUDA graphs
  bool deterministic = false;  // attention's backward too
  std::string gemm_cache;      // file of tuned algorithms; empty: none
  int gemm_candidates = 32;    // timed for each product; 1: cuBLAS's first choice
};

// GPUs that this process sees, at least 1. Throws CudaError when there is none.
int GpuCount();

// Ops on an NVIDIA GPU, all in one stream. Throws CudaError.
std::unique_ptr<Ops> MakeCudaOps(const CudaOptions& options);

}  // namespace muster::device
