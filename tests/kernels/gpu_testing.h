#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>

#include "trainer/tensor/cuda_check.h"

namespace muster {

// Signal to quantisation noise, in dB, over (actual, expected) pairs; NaN if any is NaN.
class SqnrMeter {
 public:
  void Add(double actual, double expected) {
    signal_ += expected * expected;
    noise_ += (actual - expected) * (actual - expected);
  }
  double Decibel() const {
    if (noise_ == 0) return std::numeric_limits<double>::infinity();
    return 10 * std::log10(signal_ / noise_);
  }

 private:
  double signal_ = 0, noise_ = 0;
};

// Captures what `enqueue` puts into a stream as a CUDA graph, and runs that graph once.
inline void RunAsGraph(const std::function<void(cudaStream_t)>& enqueue) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  MUSTER_CUDA_CHECK(cudaDeviceSynchronize());
  MUSTER_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  MUSTER_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  enqueue(stream);
  MUSTER_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  MUSTER_CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  MUSTER_CUDA_CHECK(cudaGraphLaunch(executable, stream));
  MUSTER_CUDA_CHECK(cudaStreamSynchronize(stream));
  MUSTER_CUDA_CHECK(cudaGraphExecDestroy(executable));
  MUSTER_CUDA_CHECK(cudaGraphDestroy(graph));
  MUSTER_CUDA_CHECK(cudaStreamDestroy(stream));
}

// main of a test program that needs a GPU: exit status 77 (skipped) where there is none.
inline int RunGpuTests(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("no CUDA device: skipped");
    return 77;
  }
  return RUN_ALL_TESTS();
}

}  // namespace muster
