#include "trainer/device/cuda_graph.h"

#include "trainer/tensor/cuda_check.h"

namespace muster::device {

CudaGraph::~CudaGraph() {
  if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
}

void CudaGraph::Record(const std::function<void()>& work, cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  MUSTER_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  try {
    work();
  } catch (...) {
    cudaStreamEndCapture(stream, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  MUSTER_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  const cudaError_t status = cudaGraphInstantiate(&executable_, graph, 0);
  cudaGraphDestroy(graph);
  MUSTER_CUDA_CHECK(status);
}

void CudaGraph::Run(const std::function<void()>& work, cudaStream_t stream) {
  if (!seen_) {
    seen_ = true;
    return work();
  }
  if (executable_ == nullptr) Record(work, stream);
  MUSTER_CUDA_CHECK(cudaGraphLaunch(executable_, stream));
}

}  // namespace muster::device
