#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "trainer/config/error.h"

// How failures of the CUDA runtime and of the libraries above it become exceptions.

namespace muster {

// A CUDA, cuBLAS or cuDNN call that failed, or work that the device can't do.
class CudaError : public TrainerError {
 public:
  explicit CudaError(const std::string& message) : TrainerError(ExitCode::kCuda, "cuda", message) {}
};

// The message of a failed call: "file:line: expression: reason".
inline std::string CallFailure(const char* file, int line, const char* expression,
                               const std::string& reason) {
  return std::string(file) + ":" + std::to_string(line) + ": " + expression + ": " + reason;
}

}  // namespace muster

// Throws CudaError unless the runtime call gives cudaSuccess. After a kernel launch check
// cudaGetLastError().
#define MUSTER_CUDA_CHECK(expression)                                                     \
  do {                                                                                    \
    const cudaError_t muster_error = (expression);                                        \
    if (muster_error != cudaSuccess) {                                                    \
      throw ::muster::CudaError(::muster::CallFailure(__FILE__, __LINE__, #expression,    \
                                                      cudaGetErrorString(muster_error))); \
    }                                                                                     \
  } while (false)
