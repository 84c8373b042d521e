#pragma once

#include <memory>
#include <string>

#include "trainer/device/ops.h"

namespace muster::device {

struct CudaOptions {
  int ordinal = 0;             // of the GPU
  bool deterministic = false;  // attention's backward too
  std::string gemm_cache;      // file of tuned algorithms; empty: none
  int gemm_candidates = 32;    // timed for each product; 1: cuBLAS's first choice
};

// Ops on an NVIDIA GPU, all in one stream. Throws CudaError.
std::unique_ptr<Ops> MakeCudaOps(const CudaOptions& options);

}  // namespace muster::device
