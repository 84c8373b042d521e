#pragma once

#include <cublasLt.h>

#include <string>

#include "trainer/tensor/cuda_check.h"

// Throws CudaError unless the cuBLAS call gives CUBLAS_STATUS_SUCCESS. `object`: what the call was
// about; evaluated only on failure.
#define MUSTER_CUBLAS_CHECK(expression, object)                                                   \
  do {                                                                                            \
    const cublasStatus_t muster_status = (expression);                                            \
    if (muster_status != CUBLAS_STATUS_SUCCESS) {                                                 \
      throw ::muster::CudaError(::muster::CallFailure(                                            \
          __FILE__, __LINE__, #expression,                                                        \
          std::string(cublasLtGetStatusName(muster_status)) + " (" + std::string(object) + ")")); \
    }                                                                                             \
  } while (false)
