#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace muster::device {

// Work of a stream that is the same each time: run as it is at first (libraries load their kernels
// then), recorded the second time, replayed from then on. One thread; throws CudaError.
class CudaGraph {
 public:
  CudaGraph() = default;
  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  void Run(const std::function<void()>& work, cudaStream_t stream);

 private:
  void Record(const std::function<void()>& work, cudaStream_t stream);

  bool seen_ = false;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace muster::device
